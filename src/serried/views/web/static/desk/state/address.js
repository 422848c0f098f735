// The address bar: the state is written there, at once or when the view has come to rest.

import { writeState } from "./fields.js";

/** @typedef {import("./fields.js").State} State */

const REST_MS = 250;

/** Writes states into the address bar and the browser's history. */
export class Address {
  /**
   * @param {() => State} state returns the newest state
   * @param {() => import("./fields.js").Field[]} always  fields always written
   * @param {() => string} mark  what a step of history remembers beside its address
   */
  constructor(state, always, mark) {
    this.state = state;
    this.always = always;
    this.mark = mark;
    /** The field that wrote the newest step of history. */
    this.typedInto = "";
    /** @type {number | null} */
    this.timer = null;
  }

  /**
   * Writes the state as a step of history; what is typed into one field is one step.
   * @param {string} field "" for a control that is not typed into
   */
  step(field) {
    if (field && field === this.typedInto) this.write();
    else history.pushState(this.mark(), "", this._text());
    this.typedInto = field;
  }

  /** Writes the state in place of the newest step. */
  write() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    history.replaceState(this.mark(), "", this._text());
  }

  /** Writes the state once nothing has moved for a while: browsers allow few writes a second. */
  writeSoon() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  _text() {
    const words = writeState(this.state(), this.always());
    return words ? `?${words}` : location.pathname;
  }
}
