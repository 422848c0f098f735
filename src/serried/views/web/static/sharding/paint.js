// Painting a step under ZeRO: three bars for each rank, in rows of layers, and under them the bytes
// that a rank holds after each event.
//
//        rank 0       rank 1            a bar is as wide as its bytes: P, G, O; each row a layer
//       P G OOOO     P G OOOO           full: held all the time, at its place in the whole
//      |=| |====|   |=| |====|          pale: gathered for now, or a gradient not yet reduced
//
//      ▂▂▄▄▂▂▄▄▂▂█▄▂                    held after each event; gathered and gradients on top

import { replay, total } from "./sharded.js";

/** @typedef {import("./sharded.js").PlannedStep} PlannedStep */
/** @typedef {import("./sharded.js").RankBars} RankBars */
/** @typedef {import("./sharded.js").ShardingAnswer} ShardingAnswer */
/** @typedef {import("../base/theme.js").Theme} Theme */
/**
 * @typedef {object} Scenery
 * @property {CanvasRenderingContext2D} context
 * @property {number} width
 * @property {number} height
 * @property {ShardingAnswer} answer
 * @property {number} done
 * @property {Theme} theme
 * @property {(name: "rank" | "more" | "travels", value: number) => string} say  a rank, how many
 *   more there are, or what an event sends
 */

const MARGIN = 16;
const NAMES = 18;
const TRAVEL = 26;
const STRIP = 56;
const GAP_WIDE = 0.5;
const LEAST_PART = 2;
const PALE = "66";
const LETTERS = { parameters: "P", gradients: "G", optimizer: "O" };

/**
 * Returns the left edge and the width of each rank's three bars.
 * @param {RankBars[]} ranks
 * @param {number} width
 */
function columnsOf(ranks, width) {
  const parts = ranks.map(({ count }) => (count ? GAP_WIDE : 1));
  const unit =
    (width - 2 * MARGIN) /
    Math.max(
      1,
      parts.reduce((sum, part) => sum + part, 0),
    );
  let x = MARGIN;
  return parts.map((part) => {
    const column = { left: x + 0.06 * unit, wide: (part - 0.12) * unit };
    x += part * unit;
    return column;
  });
}

/** Draws a moment. @param {Scenery} scenery */
export function paintSharding(scenery) {
  const { answer, height } = scenery;
  const row = answer.bars[0];
  if (!row) return;
  const strip = answer.step ? STRIP : 0;
  const box = { top: TRAVEL + NAMES, bottom: height - strip - NAMES };
  const columns = columnsOf(row.ranks, scenery.width);
  row.ranks.forEach((rank, i) => paintRank(scenery, rank, columns[i], box));
  if (!answer.step) return;
  paintTravel(scenery, row.ranks, columns);
  paintHeld(scenery, answer.step, { top: height - STRIP, bottom: height - 4 });
}

/**
 * @param {Scenery} scenery
 * @param {RankBars} rank
 * @param {{left: number, wide: number}} column
 * @param {{top: number, bottom: number}} box
 */
function paintRank({ answer, context, done, say, theme }, rank, { left, wide }, { top, bottom }) {
  context.font = `600 12px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = theme.text;
  const name = rank.count ? say("more", rank.count) : say("rank", rank.rank);
  const short = rank.count ? `+${rank.count}` : String(rank.rank);
  const fits = context.measureText(name).width <= wide ? name : short;
  context.fillText(fits, left + wide / 2, top - NAMES / 2);
  if (rank.count) return;
  const { step } = answer;
  const layers = step?.layers ?? [1];
  const all = layers.reduce((sum, size) => sum + size, 0);
  const isCut = rank.bars.some(({ state, share }) => state === "gradients" && share < 1);
  const now = step ? replay(step, isCut, done) : null;
  const weights = rank.bars.map(({ weight }) => Math.max(weight, 0.12));
  const unit = (wide - 8) / weights.reduce((sum, weight) => sum + weight, 0);
  let x = left;
  rank.bars.forEach((bar, i) => {
    const across = weights[i] * unit;
    const colour = answer.colours[bar.state];
    let y = top;
    layers.forEach((size, layer) => {
      const high = ((bottom - top) * size) / all;
      const cell = { x, y: y + 0.5, across, high: high - (layers.length > 1 ? 2 : 1) };
      const isPale =
        (bar.state === "parameters" && now?.gathered[layer]) ||
        (bar.state === "gradients" && now?.gradients[layer] === "whole");
      const isThere = bar.state !== "gradients" || !now || now.gradients[layer] === "part";
      paintCell({ context, theme }, cell, colour, {
        pale: Boolean(isPale),
        part: isThere ? bar : null,
      });
      y += high;
    });
    context.font = `12px ${theme.font}`;
    context.fillStyle = theme.faint;
    const letter = LETTERS[bar.state];
    if (context.measureText(letter).width <= across + 3)
      context.fillText(letter, x + across / 2, bottom + NAMES / 2);
    x += across + 4;
  });
}

/**
 * @param {{context: CanvasRenderingContext2D, theme: Theme}} on
 * @param {{x: number, y: number, across: number, high: number}} cell
 * @param {string} colour
 * @param {{pale: boolean, part: {start: number, share: number} | null}} filled
 */
function paintCell({ context, theme }, { x, y, across, high }, colour, { pale, part }) {
  context.fillStyle = theme.cell;
  context.fillRect(x, y, across, high);
  if (pale) {
    context.fillStyle = `${colour}${PALE}`;
    context.fillRect(x, y, across, high);
  }
  if (part) {
    context.fillStyle = colour;
    const tall = Math.min(high, Math.max(LEAST_PART, part.share * high));
    context.fillRect(x, y + Math.min(high - tall, part.start * high), across, tall);
  }
  context.strokeStyle = theme.faint;
  context.lineWidth = 0.75;
  context.strokeRect(x + 0.5, y, across - 1, high);
}

/**
 * Draws over which ranks the newest event sends, and how much.
 * @param {Scenery} scenery
 * @param {RankBars[]} ranks
 * @param {{left: number, wide: number}[]} columns
 */
function paintTravel({ answer, context, done, say, theme, width }, ranks, columns) {
  const event = done ? answer.step?.events[done - 1] : null;
  if (!event?.moved) return;
  const line = 18;
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(columns[0].left + columns[0].wide / 2, line);
  const last = columns[columns.length - 1];
  context.lineTo(last.left + last.wide / 2, line);
  ranks.forEach(({ count }, i) => {
    if (count) return;
    const x = columns[i].left + columns[i].wide / 2;
    context.moveTo(x, line);
    context.lineTo(x, line + 8);
  });
  context.stroke();
  context.font = `600 12px ${theme.font}`;
  context.fillStyle = theme.text;
  context.textAlign = "center";
  context.fillText(say("travels", done - 1), width / 2, 8, width - 2 * MARGIN);
}

/**
 * Draws what a rank holds after each event, the moment marked.
 * @param {Scenery} scenery
 * @param {PlannedStep} step
 * @param {{top: number, bottom: number}} box
 */
function paintHeld({ answer, context, done, theme, width }, step, { top, bottom }) {
  const { colours } = answer;
  const most = total(step.events[step.peak].held) || 1;
  const wide = (width - 2 * MARGIN) / (step.events.length + 1);
  [step.begin, ...step.events.map(({ held }) => held)].forEach((held, i) => {
    const x = MARGIN + i * wide;
    let y = bottom;
    /** @type {[number, string][]} */
    const parts = [
      [held.optimizer, colours.optimizer],
      [held.parameters + held.near, colours.parameters],
      [held.gathered, `${colours.parameters}${PALE}`],
      [held.gradients, colours.gradients],
    ];
    for (const [bytes, colour] of parts) {
      const high = ((bottom - top) * bytes) / most;
      context.fillStyle = colour;
      context.fillRect(x, y - high, Math.max(1, wide - (wide > 4 ? 1 : 0)), high);
      y -= high;
    }
    if (i !== done) return;
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(x, top, Math.max(2, wide - 1), bottom - top);
  });
}

/**
 * Returns how many events are over where the strip of events is pointed at; -1 beside it.
 * @param {number} x
 * @param {number} y
 * @param {{width: number, height: number}} surface
 * @param {number} events
 */
export function eventAt(x, y, { width, height }, events) {
  if (y < height - STRIP) return -1;
  const place = Math.floor(((x - MARGIN) / (width - 2 * MARGIN)) * (events + 1));
  return Math.min(events, Math.max(0, place));
}
