// A part of the page whose module is fetched once it is needed.

import { Waiting } from "../base/waiting.js";

/** @typedef {{take(): Promise<unknown>, readonly isBusy: boolean}} Desk */
/**
 * @template {Desk} D
 * @typedef {{desk: D, readback: Record<string, unknown>}} Made  a desk, and what is read of it
 */

/**
 * Holds the desk of a part, null until it was needed.
 * @template {Desk} D
 * @template M  its module
 */
export class Later {
  /**
   * @param {() => Promise<M>} fetch
   * @param {(module: M) => Made<D>} make
   * @param {{isNeeded: () => boolean, failed: (error: unknown) => void}} host
   */
  constructor(fetch, make, { isNeeded, failed }) {
    this.fetch = fetch;
    this.make = make;
    this.isNeeded = isNeeded;
    this.waiting = new Waiting(failed);
    /** @type {D | null} */
    this.desk = null;
    /** @type {Record<string, unknown>} */
    this.readback = {};
    /** Kept once the desk has shown what the state asks for. @type {Promise<void> | null} */
    this.first = null;
  }

  get isBusy() {
    return this.waiting.isBusy || Boolean(this.desk?.isBusy);
  }

  /** Shows what the state asks for; fetches the module where that needs it. */
  async take() {
    if (this.desk) await this.desk.take();
    else if (this.first) await this.first;
    else if (this.isNeeded()) {
      this.first = this.waiting.until(this._begin());
      await this.first;
      this.first = null;
    }
  }

  /** Fetches the module before anybody needs it. */
  async prefetch() {
    // Whoever opens the part is told of what fails.
    await this.fetch().catch(() => undefined);
  }

  async _begin() {
    const { desk, readback } = this.make(await this.fetch());
    Object.assign(this, { desk, readback });
    await desk.take();
  }
}
