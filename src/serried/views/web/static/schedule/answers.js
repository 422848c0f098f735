// What the server answered of schedules: each with its last answer that could be, and its fault.

import { language } from "../base/i18n.js";
import { Refusal, askDocument, askPayload } from "../base/questions.js";
import { measuredName, measuredQuestion, readMeasured } from "./measured.js";
import { Simulated } from "./model/simulated.js";
import { MOST_NAMES, fieldOfWord, namesOf, scheduleQuestion } from "./state.js";

/** @typedef {import("./state.js").AskedState} AskedState */
/** @typedef {import("./state.js").ScheduleState} ScheduleState */
/** @typedef {import("./form.js").Fault} Fault */
/**
 * @typedef {object} Offers
 * @property {import("./form.js").Offered[]} schedules
 * @property {import("./model/simulated.js").KindTable[]} kinds
 * @property {string[]} causes
 */

/** Holds the answers to the schedules in view. */
export class Answers {
  constructor() {
    /** @type {Offers | null} */
    this.offers = null;
    /** The names of the traces, once they are known. @type {string[]} */
    this.runs = [];
    /** What could not be, by schedule. @type {Map<string, Fault>} */
    this.faults = new Map();
    /**
     * The last answer for each schedule, with the question that it answers.
     * @type {Map<string, {question: string, data: Simulated}>}
     */
    this.known = new Map();
    this.asking = new AbortController();
  }

  /** Returns what is known of a schedule, null where it was never answered. @param {string} name */
  of(name) {
    return this.known.get(name)?.data ?? null;
  }

  /**
   * Asks for every schedule of a state; false once another state is asked for.
   * @param {AskedState} state
   */
  async ask(state) {
    if (!this.offers) {
      const [offers, told] = await Promise.all([askDocument("schedules"), askDocument("traces")]);
      this.offers = offers;
      this.runs = told.traces.map((/** @type {{name: string}} */ { name }) => name);
    }
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const names = namesOf(state);
    await Promise.all(names.map((name) => this._askOne(state, name, signal)));
    if (signal.aborted) return false;
    for (const kept of [this.known, this.faults]) {
      for (const name of kept.keys()) if (!names.includes(name)) kept.delete(name);
    }
    return true;
  }

  /**
   * Returns the change that puts a step of a run on top, below the schedule it was to run, whose
   * sizes and times become the run's.
   * @param {ScheduleState} state
   * @param {string} name
   * @returns {Promise<Partial<ScheduleState> | null>}
   */
  async withRun(state, name) {
    const measured = readMeasured(name);
    if (!measured || !this.offers) return null;
    const { header } = this._read(await askPayload(measuredQuestion(measured, language())));
    const own = this.offers.schedules.filter((each) => each.name === header.schedule);
    const step = measuredName(measured.trace, header.step ?? 0);
    const names = new Set([...own.map((each) => each.name), step, ...namesOf(state)]);
    const times = { ...header.times, of: "rank", latency: "0", memory_limit: "" };
    return { ...times, window: "", action: "", name: [...names].slice(0, MOST_NAMES).join(",") };
  }

  /**
   * @param {AskedState} state
   * @param {string} name
   * @param {AbortSignal} signal
   */
  async _askOne(state, name, signal) {
    const measured = readMeasured(name);
    const offered = this.offers?.schedules.find((each) => each.name === name) ?? { name };
    const question = measured ? name : scheduleQuestion(state, offered, "");
    if (this.known.get(name)?.question === question) {
      this.faults.delete(name);
      return;
    }
    try {
      const asked = measured
        ? measuredQuestion(measured, language())
        : `schedule?${scheduleQuestion(state, offered, language())}`;
      this.known.set(name, { question, data: this._read(await askPayload(asked, signal)) });
      this.faults.delete(name);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.faults.set(name, { sentence: error.message, field: fieldOfWord(error.field) });
    }
  }

  /** @param {ArrayBuffer} buffer */
  _read(buffer) {
    const { kinds, causes } = /** @type {Offers} */ (this.offers);
    return new Simulated(buffer, kinds, causes);
  }
}
