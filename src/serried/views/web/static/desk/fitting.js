// A job made to fit its framework: what a framework that was chosen, or that a link names, does not
// have goes back to what it usually is; the page says so, and takes it back when asked.

import { language, t } from "../base/i18n.js";
import { Refusal, askDocument } from "../base/questions.js";
import { showNotice } from "./state/notices.js";
import { JOB_FIELDS, question } from "./state/fields.js";

/** @typedef {import("./state/fields.js").State} State */
/** @typedef {import("./state/fields.js").Field} Field */
/**
 * @typedef {object} Layout  the layout in view, as fitting knows it
 * @property {import("../base/store.js").Store<State>} store
 * @property {import("../base/waiting.js").Waiting} waiting
 * @property {(change: Partial<State>) => void} edit
 */

/** @type {Field[]} */
const FITTED = [...JOB_FIELDS, "dims", "kind"];

/** Fits a job that was refused, where nobody typed what does not fit. */
export class Fitting {
  /** @param {Layout} layout */
  constructor(layout) {
    this.layout = layout;
    /** Whether the next refusal is of a framework that was chosen or linked to. */
    this.mayFit = true;
    /** What was shown before the framework was chosen. @type {Partial<State> | null} */
    this.before = null;
    /** What was asked for before it was made to fit. @type {State | null} */
    this.unfit = null;
    document.addEventListener("spoken", () => {
      if (this.unfit) void layout.waiting.until(this._retell(this.unfit));
    });
  }

  /** Hears that the job is to change. @param {Partial<State>} change */
  edited(change) {
    const isJob = JOB_FIELDS.some((field) => field in change);
    if (isJob) this._forget();
    this.mayFit = "framework" in change;
    if (this.mayFit && !this.before) this.before = picked(this.layout.store.state);
  }

  /** Hears that an address is to be shown. */
  recalled() {
    this._forget();
    this.mayFit = true;
  }

  /** Hears that the job could be laid out. */
  settled() {
    this.mayFit = false;
    if (!this.unfit) this.before = null;
  }

  /** Makes the state fit its framework, and says so; true where that changed anything. */
  async fit() {
    if (!this.mayFit) return false;
    this.mayFit = false;
    const { store } = this.layout;
    const asked = { ...store.state };
    const found = await fitted(asked);
    if (!found?.told.length || question(asked, "") !== question(store.state, "")) return false;
    store.set(changeOf(found.words));
    store.write();
    this.unfit = asked;
    this._tell(found.told);
    return true;
  }

  /** Says in another language what was done. @param {State} unfit */
  async _retell(unfit) {
    const found = await fitted(unfit);
    if (found && this.unfit === unfit) this._tell(found.told);
  }

  /** @param {string[]} told */
  _tell(told) {
    showNotice("fitted", told, [{ text: t("notice.undo"), act: () => this._undo() }]);
  }

  /** Goes back to what was shown before the framework was chosen, or to what the link asked for. */
  _undo() {
    const state = this.before ?? this.unfit;
    if (!state) return;
    this.layout.edit(picked(state));
    this.before = null;
    this.mayFit = false;
  }

  _forget() {
    this.unfit = this.before = null;
    showNotice("fitted", []);
  }
}

/**
 * Asks what a framework does not have of a job; null where nothing can tell.
 * @param {State} state
 */
async function fitted(state) {
  try {
    return await askDocument(`layout/fitted?${question(state, language())}`);
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/** @param {Record<string, string[]>} words @returns {Partial<State>} */
function changeOf(words) {
  return Object.fromEntries(
    Object.entries(words).map(([field, values]) => [field, values.join("\n")]),
  );
}

/** Returns what may be made to fit. @param {Partial<State>} state @returns {Partial<State>} */
function picked(state) {
  return Object.fromEntries(FITTED.map((field) => [field, state[field]]));
}
