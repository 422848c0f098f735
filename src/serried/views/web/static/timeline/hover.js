// The pointer over the timeline: what it lights in every view, and the tip that says what is there.

import { hideTip, showTip } from "../base/tip.js";
import { spokenSlice } from "./speech.js";

/** @typedef {import("./paint/spot.js").Spot} Spot */
/**
 * @typedef {object} Asking
 * @property {(spot: Spot, signal: AbortSignal) => Promise<number>} at  asks what lies at a spot
 * @property {import("../base/waiting.js").Waiting} waiting
 */

/** How long the pointer rests before the server is asked what is under it. */
const REST_MS = 70;

/**
 * Follows the pointer; where only shares of a track are known, the server is asked what lies there.
 */
export class TimelineHover {
  /**
   * @param {import("./state.js").Host} host
   * @param {import("./view.js").TimelineView} view
   * @param {import("./plan.js").PlanDesk} plan
   * @param {Asking} asking
   */
  constructor(host, view, plan, { at, waiting }) {
    this.host = host;
    this.view = view;
    this.plan = plan;
    this.askAt = at;
    this.waiting = waiting;
    /** @type {number | null} */
    this.resting = null;
    this.asking = new AbortController();
  }

  get isBusy() {
    return this.resting !== null;
  }

  /** Lights what is at a spot. @param {Spot} spot */
  take(spot) {
    const { host, view } = this;
    this.asking.abort();
    if (this.resting !== null) clearTimeout(this.resting);
    this.resting = null;
    const { span, rank } = spot;
    if (span !== null) return this._light(span, rank);
    host.hover(rank < 0 ? null : { type: "rank", rank });
    hideTip();
    this.resting = setTimeout(() => {
      this.resting = null;
      this.asking = new AbortController();
      const { signal } = this.asking;
      void this.waiting.until(
        this.askAt(spot, signal).then((found) => {
          if (signal.aborted || found < 0) return;
          view.hovered = found;
          view.relight.request();
          this._light(found, rank);
        }),
      );
    }, REST_MS);
  }

  /** @param {number} span @param {number} rank */
  _light(span, rank) {
    const { host, plan, view } = this;
    if (span >= 0) host.hover({ type: "slice", slice: span, rank });
    else host.hover(rank < 0 ? null : { type: "rank", rank });
    if (span < 0 || !host.tracks) return hideTip();
    const { tracks } = host;
    const tip = () => {
      const { x, y } = view.pointerOnPage();
      showTip([spokenSlice(span, tracks), ...plan.lines(span)], x, y);
    };
    tip();
    if (!plan.isAsked) return;
    void this.waiting.until(plan.explain(span).then(() => void (view.hovered === span && tip())));
  }
}
