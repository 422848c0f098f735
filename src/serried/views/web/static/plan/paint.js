// Painting what a plan holds: a bar of memory for each place in the pipeline against the card,
// hatched as estimates are.
//
//   79.6 GiB ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  the card
//            ▇    ▆    ▅    ▅   items, the model's states at the foot
//            0    1    2    3

import { fillEstimated } from "./estimated.js";
import { bytesText } from "../base/quantity.js";
import { stacked, stagesText } from "./planned.js";

/** @typedef {import("./planned.js").PlanAnswer} PlanAnswer */
/** @typedef {import("../base/theme.js").Theme} Theme */
/**
 * @typedef {object} PlanScenery
 * @property {CanvasRenderingContext2D} context
 * @property {number} width
 * @property {number} height
 * @property {PlanAnswer} plan
 * @property {Theme} theme
 * @property {string} card  what the card is called, with its size
 * @property {string} estimated  the word
 * @property {number} above      pixels above the bars, where their key stands
 */

const MARGIN = 16;
const WORD = 24;
const NAMES = 20;
const WIDEST = 96;
const ROOMY = 1.05;

/**
 * Returns where the bars of memory stand, by place.
 * @param {PlanAnswer} plan
 * @param {number} width
 * @param {number} height
 * @param {number} [above]  pixels above the bars, where their key stands
 */
export function placesOf({ memory }, width, height, above = 0) {
  const foot = height - NAMES;
  const most = Math.max(...memory.map(({ card, total }) => Math.max(card, total))) * ROOMY;
  const pitch = (width - 2 * MARGIN) / Math.max(1, memory.length);
  const wide = Math.min(WIDEST, pitch * 0.8);
  const unit = Math.max(0, foot - WORD - above) / most;
  const columns = memory.map((_, place) => MARGIN + (place + 0.5) * pitch - wide / 2);
  return { foot, unit, pitch, wide, columns };
}

/**
 * Returns what is at a point: a place in the pipeline, or nothing.
 * @param {PlanAnswer} plan
 * @param {{width: number, height: number}} size
 * @param {{x: number, y: number}} point
 * @returns {{place: number} | null}
 */
export function foundAt(plan, { width, height }, { x }) {
  const { columns, pitch, wide } = placesOf(plan, width, height);
  const spare = (pitch - wide) / 2;
  const place = columns.findIndex((left) => left - spare <= x && x < left + wide + spare);
  return place < 0 ? null : { place };
}

/** Draws a plan. @param {PlanScenery} scenery */
export function paintPlan(scenery) {
  const { above, context, height, plan, theme, width } = scenery;
  const places = placesOf(plan, width, height, above);
  context.font = `12px ${theme.font}`;
  context.textBaseline = "middle";
  plan.memory.forEach((_, place) => paintPlace(scenery, places, place));
  paintCard(scenery, places);
  paintWord(scenery);
}

/**
 * @param {PlanScenery} scenery
 * @param {ReturnType<typeof placesOf>} places
 * @param {number} place
 */
function paintPlace({ context, plan, theme }, { columns, foot, pitch, unit, wide }, place) {
  const { fits, items, total } = plan.memory[place];
  const left = columns[place];
  for (const { name, from, to } of stacked(items, Object.keys(plan.words.memory))) {
    const box = { x: left, y: foot - unit * to, width: wide, height: unit * (to - from) };
    fillEstimated(context, box, plan.colours[name] ?? theme.faint, theme.box);
  }
  context.strokeStyle = fits ? theme.faint : theme.alarm;
  context.lineWidth = fits ? 1 : 2;
  context.strokeRect(left, foot - unit * total, wide, unit * total);
  context.textAlign = "center";
  const middle = left + wide / 2;
  const size = bytesText(total);
  context.fillStyle = fits ? theme.text : theme.alarm;
  if (context.measureText(size).width < pitch - 4)
    context.fillText(size, middle, foot - unit * total - 9);
  const whole = stagesText(plan.memory[place]);
  // The stages of many chunks: the first names the place, and the table below has all.
  const isWhole = context.measureText(whole).width < pitch - 4;
  const name = isWhole ? whole : whole.replace(/\+.*/, "+…");
  context.fillStyle = theme.faint;
  const isNamed = context.measureText(isWhole ? "00" : name).width < pitch || place % 8 === 0;
  if (isNamed) context.fillText(name, middle, foot + NAMES / 2);
}

/** @param {PlanScenery} scenery @param {ReturnType<typeof placesOf>} places */
function paintCard({ card, context, plan, theme, width }, { foot, unit }) {
  const y = foot - unit * Math.min(...plan.memory.map((each) => each.card));
  context.save();
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.setLineDash([4, 4]);
  context.beginPath();
  context.moveTo(MARGIN, y);
  context.lineTo(width - MARGIN, y);
  context.stroke();
  context.restore();
  context.textAlign = "left";
  const wide = context.measureText(card).width;
  context.fillStyle = theme.box;
  context.fillRect(MARGIN, y + 2, wide + 4, 16);
  context.fillStyle = theme.text;
  context.fillText(card, MARGIN, y + 10);
}

/** Says that what is drawn was not measured. @param {PlanScenery} scenery */
function paintWord({ above, context, estimated, theme, width }) {
  context.textAlign = "right";
  context.fillStyle = theme.faint;
  context.fillText(estimated, width - MARGIN, above + 10);
}
