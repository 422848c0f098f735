// What ranks compute in attention: how many pairs of blocks each, and which queries meet which keys
// when.
//
//     [ 1.5 ]  [ 2 ]      pairs of this step
//     [===  ]  [==== ]    of all pairs that any rank computes, those that it has computed
//
//         keys  0 1 2 3
//     queries 0 d          in the colour of the rank that has the queries: pale once it is done,
//             1 # d        bold in this step; half of what lies on the diagonal is masked (d)
//             2 # # d
//             3 # # # d

import { WORK } from "./figure.js";

/** @typedef {import("./scenery.js").Scenery} Scenery */

const BAR = 6;
/** What a picture needs for the pairs beside it, and what they take of it at most. */
const LEAST_WIDTH = 440;
const MOST_SHARE = 0.36;
const LEAST_SIDE = 96;
const TITLE = 18;
const MARGIN = 16;

/**
 * Draws below each rank how many pairs it computes in the step, and has computed.
 * @param {Scenery} scenery
 * @param {number} done
 */
export function paintWork({ context, execution, figure, theme, say, steps }, done) {
  const { column, top, x } = figure;
  const { numSteps } = execution;
  const now = done < numSteps ? execution.pairsIn(done) : null;
  const before = execution.pairsAfter(done);
  const all = execution.pairsAfter(numSteps);
  const most = Math.max(...all) || 1;
  const told = [...all].map((_, rank) => (now ? now[rank] : all[rank]));
  const worded = told.map((pairs) => say("pairs", { pairs }));
  context.font = `12px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const fits = (/** @type {string[]} */ texts) =>
    texts.every((text) => context.measureText(text).width < column - 4);
  const texts = [worded, told.map(String)].find(fits);
  const wide = Math.max(1, column - (column < 16 ? 1 : 6));
  told.forEach((_, rank) => {
    const left = x[rank] - wide / 2;
    context.fillStyle = theme.text;
    if (texts) context.fillText(texts[rank], x[rank], top - WORK + 8);
    context.fillStyle = theme.cell;
    context.fillRect(left, top - BAR - 4, (wide * all[rank]) / most, BAR);
    context.fillStyle = theme.accent;
    const share = before[rank] + (now ? now[rank] * (steps - done) : 0);
    context.fillRect(left, top - BAR - 4, (wide * share) / most, BAR);
  });
}

/**
 * Returns how wide the pairs beside a picture are, 0 where there are none or no room for them.
 * @param {import("./execution.js").Execution} execution
 * @param {number} width
 * @param {number} height
 */
export function roomForMeetings({ numChunks }, width, height) {
  if (!numChunks || width < LEAST_WIDTH) return 0;
  const side = Math.min(MOST_SHARE * width, height - TITLE) - MARGIN;
  return side < LEAST_SIDE ? 0 : side + MARGIN;
}

/**
 * Draws which chunks of queries have met which of keys.
 * @param {Scenery} scenery
 * @param {{left: number, side: number}} place
 * @param {string} title
 */
export function paintMeetings({ context, execution, hues, theme, steps }, { left, side }, title) {
  const { numChunks, numSteps } = execution;
  const cell = side / numChunks;
  const gap = cell >= 6 ? 1 : 0;
  context.font = `12px ${theme.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = theme.faint;
  context.fillText(title, left, TITLE / 2, side);
  context.fillStyle = theme.cell;
  context.fillRect(left, TITLE, side, side);
  const done = Math.min(numSteps, Math.floor(steps + 1e-9));
  for (let step = 0; step <= Math.min(done, numSteps - 1); step++) {
    const isNow = step === done;
    for (const { query, key, half } of execution.meetings(step)) {
      const [x, y] = [left + key * cell, TITLE + query * cell];
      const size = cell - gap;
      context.fillStyle = isNow ? hues.fill(query) : hues.part(query);
      context.beginPath();
      context.moveTo(x, y);
      if (!half) context.lineTo(x + size, y);
      context.lineTo(x + size, y + size);
      context.lineTo(x, y + size);
      context.closePath();
      context.fill();
      if (!isNow || cell < 6) continue;
      context.strokeStyle = theme.text;
      context.lineWidth = 1;
      context.stroke();
    }
  }
}
