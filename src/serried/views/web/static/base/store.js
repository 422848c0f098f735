// The state of the page and the address bar that holds it: changed, and written, in one place.

/**
 * @template S
 * @typedef {{
 *   readonly state: S,
 *   set(change: Partial<S>): void,
 *   step(change: Partial<S>, field?: string): void,
 *   soon(change: Partial<S>): void,
 *   leaveField(): void,
 * }} Part  the store, as a part of the page knows it that has only these words of the state
 */

const REST_MS = 250;

/**
 * Holds a state of words, and writes it into the address bar and the browser's history.
 * @template {object} S
 */
export class Store {
  /**
   * @param {S} state
   * @param {(state: S) => string} write  returns the address's search part, "?" left out
   * @param {() => unknown} mark  what a step of history remembers beside its address
   */
  constructor(state, write, mark) {
    this.state = state;
    this.text = write;
    this.mark = mark;
    /** The field that wrote the newest step of history. */
    this.typedInto = "";
    /** @type {number | null} */
    this.timer = null;
  }

  /** Changes the state; the address is left as it is. @param {Partial<S>} change */
  set(change) {
    this.state = { ...this.state, ...change };
  }

  /**
   * Changes the state as a step of history; what is typed into one field is one step.
   * @param {Partial<S>} change
   * @param {string} [field]  "" for a control that is not typed into
   */
  step(change, field = "") {
    this.set(change);
    if (field && field === this.typedInto) this.write();
    else history.pushState(this.mark(), "", this._address());
    this.typedInto = field;
  }

  /**
   * Changes the state in place of the newest step, which is written once nothing has moved for a
   * while: browsers allow few writes a second.
   * @param {Partial<S>} change
   */
  soon(change) {
    this.set(change);
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  /** Writes the state in place of the newest step. */
  write() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    history.replaceState(this.mark(), "", this._address());
  }

  /** Takes a state that the address holds already. @param {S} state */
  take(state) {
    this.state = state;
    this.typedInto = "";
  }

  /** Ends the step that a field was typed into. */
  leaveField() {
    this.typedInto = "";
  }

  _address() {
    const words = this.text(this.state);
    return words ? `?${words}` : location.pathname;
  }
}
