// Painting a plan: a bar of memory for each place in the pipeline against the card, and below them
// the step as one bar.
//
//   79.6 GiB ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  the card
//            ▇    ▆    ▅    ▅   items, the model's states at the foot
//            0    1    2    3
//   step     ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  parts that sum to it

import { bytesText } from "../base/quantity.js";
import { partsOf, stacked, stagesText } from "./planned.js";

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
 * @property {string} step  what the step is called, with its time
 */

const MARGIN = 16;
const ABOVE = 24;
const NAMES = 18;
const STEP = 24;
const STEP_ROOM = STEP + 28;
const WIDEST = 72;
const ROOMY = 1.05;

/**
 * Returns where everything stands: bars of memory by place, and the bar of the step.
 * @param {PlanAnswer} plan
 * @param {number} width
 * @param {number} height
 */
export function placesOf({ memory }, width, height) {
  const foot = height - STEP_ROOM - NAMES;
  const most = Math.max(...memory.map(({ card, total }) => Math.max(card, total))) * ROOMY;
  const pitch = (width - 2 * MARGIN) / Math.max(1, memory.length);
  const wide = Math.min(WIDEST, pitch * 0.8);
  const unit = Math.max(0, foot - ABOVE) / most;
  const columns = memory.map((_, place) => MARGIN + (place + 0.5) * pitch - wide / 2);
  const step = { left: MARGIN, top: height - STEP - 4, wide: width - 2 * MARGIN, tall: STEP };
  return { foot, unit, pitch, wide, columns, step };
}

/**
 * Returns what is at a point: a place in the pipeline, a part of the step, or nothing.
 * @param {PlanAnswer} plan
 * @param {{width: number, height: number}} size
 * @param {{x: number, y: number}} point
 * @returns {{place: number} | {part: import("./planned.js").Part} | null}
 */
export function foundAt(plan, { width, height }, { x, y }) {
  const { columns, pitch, step, wide } = placesOf(plan, width, height);
  if (y >= step.top) {
    const moment = ((x - step.left) / step.wide) * plan.time.step_s;
    const part = partsOf(plan).find(({ from, to }) => from <= moment && moment < to);
    return part ? { part } : null;
  }
  const spare = (pitch - wide) / 2;
  const place = columns.findIndex((left) => left - spare <= x && x < left + wide + spare);
  return place < 0 || y > height - STEP_ROOM ? null : { place };
}

/** Draws a plan. @param {PlanScenery} scenery */
export function paintPlan(scenery) {
  const { context, height, plan, theme, width } = scenery;
  const places = placesOf(plan, width, height);
  context.font = `12px ${theme.font}`;
  context.textBaseline = "middle";
  plan.memory.forEach((_, place) => paintPlace(scenery, places, place));
  paintCard(scenery, places);
  paintStep(scenery, places.step);
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
    context.fillStyle = plan.colours[name] ?? theme.faint;
    context.fillRect(left, foot - unit * to, wide, unit * (to - from));
  }
  context.strokeStyle = fits ? theme.edge : theme.alarm;
  context.lineWidth = fits ? 1 : 2;
  context.strokeRect(left, foot - unit * total, wide, unit * total);
  context.textAlign = "center";
  const middle = left + wide / 2;
  const size = bytesText(total);
  context.fillStyle = fits ? theme.text : theme.alarm;
  if (context.measureText(size).width < pitch - 4)
    context.fillText(size, middle, foot - unit * total - 9);
  const name = stagesText(plan.memory[place]);
  context.fillStyle = theme.faint;
  const isNamed = context.measureText("00").width < pitch || place % 8 === 0;
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

/** @param {PlanScenery} scenery @param {ReturnType<typeof placesOf>["step"]} bar */
function paintStep({ context, plan, step, theme }, { left, tall, top, wide }) {
  const unit = wide / plan.time.step_s;
  context.textAlign = "left";
  context.fillStyle = theme.text;
  context.fillText(step, left, top - 10);
  for (const { name, from, to } of partsOf(plan)) {
    context.fillStyle = plan.colours[name] ?? theme.faint;
    context.fillRect(left + unit * from, top, unit * (to - from), tall);
  }
  context.strokeStyle = theme.edge;
  context.lineWidth = 1;
  context.strokeRect(left, top, wide, tall);
}
