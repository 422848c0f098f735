// The marks of states: what a rank has to do with a hang, told by a shape as well as by a colour.

import { MARK_OF_STATE } from "../base/canvas/states.js";
import { traceMark } from "../base/canvas/marks.js";
import { css } from "../base/theme.js";
import { isPale } from "./heat.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {{width: number, height: number, side: number, inset: number}} Cell */

const CAUSE = 3;
/** Pixels of a cell below which only the cause has its mark, then as large as it can be seen. */
const MARKS_FROM = 14;
/** So many causes in view are marked in small cells; of more the marks would hide each other. */
const MOST_SMALL = 1000;
const LEAST = 6;
const ON_DARK = "#f4f7fb";

/**
 * Draws the mark of each rank in its cell's lower right corner.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {() => number[]} inView
 * @param {Cell} cell
 */
export function paintStates(picture, context, inView, cell) {
  const { heat, shade, nest, camera, theme } = picture;
  if (!heat) return;
  const { width, height, side, inset } = cell;
  const isSmall = side < MARKS_FROM;
  const radius = isSmall ? LEAST : Math.min(9, Math.max(3, 0.11 * side));
  const [right, down] = isSmall
    ? [width / 2, height / 2]
    : [width - inset - radius - 4, height - inset - radius - 4];
  context.lineWidth = 1.5;
  // Small cells are many: they are not gone through to find a few.
  const marked = isSmall ? heat.ranksAt(CAUSE) : inView();
  if (isSmall && marked.length > MOST_SMALL) return;
  for (const rank of marked) {
    const shape = MARK_OF_STATE[heat.values[rank]];
    if (!shape) continue;
    const ink = isPale(shade.colours[rank]) ? theme.letters : ON_DARK;
    const left = (nest.cellX(rank) - camera.x) * camera.scale;
    const top = (nest.cellY(rank) - camera.y) * camera.scale;
    context.beginPath();
    traceMark(context, shape.mark, left + right, top + down, radius);
    context.strokeStyle = isSmall ? theme.text : ink;
    context.fillStyle = isSmall ? css(shade.colours[rank]) : ink;
    if (shape.isFull || isSmall) context.fill();
    if (!shape.isFull || isSmall) context.stroke();
  }
}
