// The time axis of the player: the steps of every algorithm in view, one line each, and the moment.

import { Surface } from "../base/canvas/surface.js";
import { theme } from "../base/theme.js";

/** @typedef {import("./execution.js").Execution} Execution */

const LINE = 10;
/** Width of a step below which borders between steps are left out. */
const LEAST_STEP = 3;

/** Draws on a strip above the slider, whose ends are `inset` pixels from its own. */
export class TimeAxis {
  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} frame @param {number} inset */
  constructor(canvas, frame, inset) {
    this.surface = new Surface(canvas, frame);
    this.frame = frame;
    this.inset = inset;
  }

  /** @param {Execution[]} executions @param {number} time @param {number} total */
  show(executions, time, total) {
    this.frame.style.height = `${LINE * Math.max(1, executions.length) + 2}px`;
    this.surface.resize();
    const context = this.surface.begin();
    const colours = theme();
    const wide = this.surface.width - 2 * this.inset;
    const at = (/** @type {number} */ moment) => this.inset + (moment / (total || 1)) * wide;
    executions.forEach((execution, line) => {
      const y = line * LINE + 1;
      context.fillStyle = colours.edge;
      context.fillRect(at(0), y, at(execution.total) - at(0), LINE - 2);
      context.fillStyle = colours.accent;
      const until = Math.min(time, execution.total);
      context.fillRect(at(0), y, at(until) - at(0), LINE - 2);
      const { starts, numSteps } = execution;
      if (wide * (execution.total / (total || 1)) < LEAST_STEP * numSteps) return;
      context.fillStyle = colours.box;
      for (let step = 1; step < numSteps; step++)
        context.fillRect(Math.round(at(starts[step])), y, 1, LINE - 2);
    });
  }
}
