// The steps of a run on the axis of the timeline: a bracket for each, and its name.

import { stepLabels } from "./names.js";
import { AXIS, GUTTER } from "./picture.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./names.js").Stretch} Stretch */

/** Pixels from the top to the brackets of steps; ticks stand above. */
export const TICKS = 19;

/**
 * Draws the steps in view, and names them.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintSteps(picture, context) {
  const { surface, theme, tracks, toPixel, names } = picture;
  /** @type {Stretch[]} */
  const steps = [];
  tracks.steps.start.forEach((start, i) => {
    paintStep(picture, context, start, tracks.steps.end[i]);
    const [from, to] = [toPixel(start), toPixel(tracks.steps.end[i])];
    steps.push({ start: from, end: to, step: tracks.steps.number[i] });
  });
  context.fillStyle = theme.text;
  const labels = stepLabels(steps, {
    left: GUTTER,
    right: surface.width,
    name: names.step,
    wide: (text) => context.measureText(text).width + 8,
  });
  const middle = TICKS + (AXIS - TICKS) / 2 - 0.5;
  for (const { text, x } of labels) context.fillText(text, x, middle);
}

/**
 * Draws a step: a bracket on the axis, and a line down the rows where it starts.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} start
 * @param {number} end
 */
function paintStep(picture, context, start, end) {
  const { surface, theme, toPixel } = picture;
  const left = Math.max(GUTTER, toPixel(start));
  const right = Math.min(surface.width, toPixel(end));
  if (right <= left) return;
  context.fillStyle = theme.cell;
  context.fillRect(left, TICKS, Math.max(1, right - left - 1), AXIS - TICKS - 2);
  // Thin steps have no line of their own each: there would be nothing but lines.
  const isThin = toPixel(end) - toPixel(start) < 6;
  if (!isThin)
    paintDown(context, Math.round(toPixel(start)) + 0.5, TICKS, surface.height, theme.text, 0.45);
}

/**
 * Draws a line down.
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} top
 * @param {number} bottom
 * @param {string} colour
 * @param {number} strength
 */
export function paintDown(context, x, top, bottom, colour, strength) {
  context.globalAlpha = strength;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, bottom);
  context.stroke();
  context.globalAlpha = 1;
}
