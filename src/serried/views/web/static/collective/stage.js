// What the player shows of the executions in view: pictures or frames, and the moves in words.

import { byId, make } from "../base/dom.js";
import { Frames } from "./frames.js";
import { Picture } from "./picture.js";
import { Playback } from "../base/playback.js";
import { moveLines, stepNumber } from "./words.js";

/** @typedef {import("./execution.js").Execution} Execution */

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** Shows executions at the moment of one clock. */
export class Stage {
  /** @param {(execution: number, step: number) => void} choose */
  constructor(choose) {
    this.playback = new Playback();
    /** @type {Execution[]} */
    this.executions = [];
    /** @type {Picture[]} */
    this.pictures = [];
    this.frames = new Frames(byId("collective-steps"), choose);
    this.moves = /** @type {HTMLDetailsElement} */ (byId("collective-moves"));
    this.moves.addEventListener("toggle", () => this._tellMoves());
    this.told = "";
  }

  /** Whether nothing is to move on its way: it goes from step to step. */
  get isStill() {
    return reduced.matches;
  }

  /** Takes what is shown. @param {Execution[]} executions */
  take(executions) {
    this.executions = executions;
    this.playback.take(executions.map(({ starts }) => starts.subarray(1)));
    while (this.pictures.length < executions.length) this.pictures.push(new Picture());
    this.pictures.length = executions.length;
    byId("collective-pictures").replaceChildren(...this.pictures.map(({ element }) => element));
  }

  /** Returns the steps that an execution has done now. @param {Execution} execution */
  stepsOf(execution) {
    const steps = execution.stepAt(this.playback.time);
    const done = Math.floor(steps + 1e-9);
    // Without motion what travels stands halfway until its step is done.
    return this.isStill && steps > done && steps < execution.numSteps ? done + 0.5 : steps;
  }

  /** Draws the moment. @param {boolean} isFrames @param {string} what */
  show(isFrames, what) {
    const { executions, pictures } = this;
    byId("collective-pictures").hidden = isFrames;
    byId("collective-steps").hidden = !isFrames;
    const steps = executions.map((each) => this.stepsOf(each));
    if (isFrames) this.frames.show(executions, steps, `${what} ${document.documentElement.lang}`);
    else {
      const { time } = this.playback;
      pictures.forEach((picture, i) => picture.show(executions[i], steps[i], time));
    }
    this._tellMoves();
  }

  /** Tells the moves of the first one's step, where they are asked for. */
  _tellMoves() {
    const [first] = this.executions;
    if (!first || !this.moves.open) return;
    const steps = this.stepsOf(first);
    const { name, algorithm, bytes, num_ranks: ranks } = first.header;
    const told = [name, algorithm, bytes, ranks, stepNumber(first, steps)].join(" ");
    if (told === this.told) return;
    this.told = told;
    const lines = moveLines(first, steps).map((line) => make("li", {}, line));
    /** @type {HTMLElement} */ (this.moves.querySelector("ul")).replaceChildren(...lines);
  }
}
