// What the server answered of a collective: an execution for each algorithm asked for, or what was
// wrong.

import { Refusal, askPayload } from "../base/questions.js";
import { Execution } from "./execution.js";
import { algorithmsOf, chosenOf } from "./state.js";

/** @typedef {import("./state.js").CollectiveState} CollectiveState */
/** @typedef {import("./state.js").Offers} Offers */

/** Executions that are kept, so that a change of algorithm and back asks nothing. */
const MOST_KEPT = 8;

/** Holds the newest executions. */
export class CollectiveAnswers {
  constructor() {
    /** @type {Execution[]} */
    this.executions = [];
    /** Changes with the executions. */
    this.asked = "";
    this.fault = "";
    /** @type {Map<string, Execution>} */
    this.known = new Map();
    this.asking = new AbortController();
  }

  /**
   * Asks for the algorithms of a state; false once another state is asked for.
   * @param {CollectiveState} state
   * @param {(words: Record<string, string>) => string} question
   * @param {{kind: string, rank: string}} group
   * @param {Offers} offers
   */
  async ask(state, question, group, offers) {
    const { collective, algorithm, bytes, priced } = state;
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const questions = algorithmsOf(algorithm).map((name) =>
      question({
        ...group,
        name: collective,
        ...(priced ? {} : { bytes }),
        ...(name ? { algorithm: name } : {}),
        ...chosenOf(state, name, offers),
      }),
    );
    try {
      const found = await Promise.all(questions.map((each) => this._one(each, signal)));
      if (signal.aborted) return false;
      Object.assign(this, { executions: found, asked: questions.join("\n"), fault: "" });
    } catch (error) {
      if (signal.aborted) return false;
      if (!(error instanceof Refusal)) throw error;
      this.fault = error.message;
    }
    return true;
  }

  /** @param {string} question @param {AbortSignal} signal */
  async _one(question, signal) {
    const known = this.known.get(question);
    const found = known ?? new Execution(await askPayload(`collective?${question}`, signal));
    this.known.delete(question);
    this.known.set(question, found);
    if (this.known.size > MOST_KEPT) this.known.delete([...this.known.keys()][0]);
    return found;
  }
}
