// Painting the layouts of a search: each by its step and its memory, those that none beats joined.
//
//   79.6 GiB ┄┄┄┄┄┄┄┄┄┄┄┄┄┄  the card
//            o  · ·   ·
//   40       │\\___o  · · ·    o  none is better in both
//        0   └───────────────
//            3.2 s     4.0 s

import { ticks } from "../base/clock.js";
import { bytesText } from "../base/quantity.js";

/** @typedef {import("./found.js").FoundLayout} FoundLayout */
/** @typedef {import("./found.js").Mark} Mark */
/** @typedef {import("../base/theme.js").Theme} Theme */
/** @typedef {{width: number, height: number}} Size */
/** @typedef {Mark & {x: number, y: number}} Dot */
/**
 * @typedef {object} Said  what is written into the picture, and which layouts stand out
 * @property {string} card
 * @property {string} step    names the axis of steps
 * @property {string} memory  names that of memory
 * @property {string} front   names the front
 * @property {(layout: FoundLayout) => boolean} isPicked
 * @property {FoundLayout | null} pointed
 */

const LEFT = 72;
const RIGHT = 24;
const TOP = 24;
const BOTTOM = 40;
const RADII = { cloud: 2, best: 4, front: 4 };
const NEAR = 12;
/** A step to the side counts for less than one across, so that arrows go where they point. */
const ACROSS = 3;

/**
 * Returns where every layout stands.
 * @param {Mark[]} marks
 * @param {Size} size
 * @returns {Dot[]}
 */
export function dotsOf(marks, { width, height }) {
  const { first, last, card } = rangeOf(marks);
  return marks.map((mark) => ({
    ...mark,
    x: LEFT + ((mark.layout.step_s - first) / (last - first || 1)) * (width - LEFT - RIGHT),
    y: TOP + (1 - mark.layout.peak_bytes / card) * (height - TOP - BOTTOM),
  }));
}

/** Returns what the axes span: seconds, and bytes from 0. @param {Mark[]} marks */
function rangeOf(marks) {
  let [first, last, card] = [Infinity, 0, 1];
  for (const { layout } of marks) {
    first = Math.min(first, layout.step_s);
    last = Math.max(last, layout.step_s);
    card = Math.max(card, layout.card_bytes);
  }
  return { first, last, card };
}

/**
 * Returns the layout nearest to a point, of equal ones that of the front; null where none is near.
 * @param {Dot[]} dots
 * @param {{x: number, y: number}} point
 */
export function dotAt(dots, { x, y }) {
  let [found, least] = [/** @type {Dot | null} */ (null), NEAR];
  for (const dot of dots) {
    const far = Math.hypot(dot.x - x, dot.y - y) - (dot.role === "cloud" ? 0 : 2);
    if (far <= least) [found, least] = [dot, far];
  }
  return found;
}

/**
 * Returns the next layout in a direction; the one itself where there is none, the quickest of the
 * front at first.
 * @param {Dot[]} dots
 * @param {Dot | null} from
 * @param {{dx: number, dy: number}} way  one of both is 1 or -1
 */
export function dotBeside(dots, from, { dx, dy }) {
  if (!from) return dots.find(({ role }) => role === "front") ?? dots[0] ?? null;
  let [found, least] = [from, Infinity];
  for (const dot of dots) {
    const along = dx * (dot.x - from.x) + dy * (dot.y - from.y);
    const across = Math.abs(dy * (dot.x - from.x) + dx * (dot.y - from.y));
    const far = along + ACROSS * across;
    if (along > 0.5 && far < least) [found, least] = [dot, far];
  }
  return found;
}

/**
 * Draws the layouts.
 * @param {CanvasRenderingContext2D} context
 * @param {Dot[]} dots
 * @param {Size} size
 * @param {Theme} theme
 * @param {Said} said
 */
export function paintFront(context, dots, size, theme, said) {
  context.font = `12px ${theme.font}`;
  context.textBaseline = "middle";
  paintAxes(context, dots, size, theme, said);
  const front = dots.filter(({ role }) => role === "front");
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  line(context, front);
  for (const dot of dots) paintDot(context, dot, theme, said);
  for (const dot of dots) {
    if (dot.layout === said.pointed) ring(context, dot, 8, theme.text);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Dot} dot
 * @param {Theme} theme
 * @param {Said} said
 */
function paintDot(context, { layout, role, x, y }, theme, { isPicked }) {
  const radius = RADII[role];
  context.fillStyle = role === "front" ? theme.accent : role === "best" ? theme.box : theme.faint;
  context.globalAlpha = role === "cloud" ? 0.5 : 1;
  context.beginPath();
  if (role === "cloud") context.rect(x - radius / 2, y - radius / 2, radius, radius);
  else context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
  context.globalAlpha = 1;
  if (role === "best") ring(context, { x, y }, radius, theme.text);
  if (role !== "cloud" && isPicked(layout)) {
    context.fillStyle = theme.text;
    context.beginPath();
    context.arc(x, y, radius + 2, 0, 2 * Math.PI);
    context.fill();
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Dot[]} dots
 * @param {Size} size
 * @param {Theme} theme
 * @param {Said} said
 */
function paintAxes(context, dots, { width, height }, theme, said) {
  const { first, last, card } = rangeOf(dots);
  const [foot, right] = [height - BOTTOM, width - RIGHT];
  context.strokeStyle = theme.edge;
  context.fillStyle = theme.faint;
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const share of [0, 0.25, 0.5, 0.75]) {
    const y = foot - share * (foot - TOP);
    stroke(context, LEFT, y, right, y);
    context.fillText(bytesText(card * share), LEFT - 8, y);
  }
  context.textAlign = "center";
  const unit = (right - LEFT) / (last - first || 1);
  for (const { time, label } of ticks(first * 1e9, last * 1e9, Math.max(2, width / 140))) {
    const x = LEFT + unit * (time / 1e9 - first);
    stroke(context, x, foot, x, foot + 4);
    context.fillText(label, x, foot + 13);
  }
  context.strokeStyle = theme.text;
  context.setLineDash([4, 4]);
  stroke(context, LEFT, TOP, right, TOP);
  context.setLineDash([]);
  context.textAlign = "left";
  context.fillText(said.memory, 8, 12);
  context.fillText(said.step, LEFT, height - 9);
  context.fillStyle = theme.text;
  context.textAlign = "right";
  context.fillText(said.card, right, 12);
  context.fillStyle = theme.accent;
  context.fillText(said.front, right, height - 9);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number}} middle
 * @param {number} radius
 * @param {string} colour
 */
function ring(context, { x, y }, radius, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
function stroke(context, x0, y0, x1, y1) {
  line(context, [
    { x: x0, y: y0 },
    { x: x1, y: y1 },
  ]);
}

/** @param {CanvasRenderingContext2D} context @param {{x: number, y: number}[]} points */
function line(context, points) {
  context.beginPath();
  points.forEach(({ x, y }) => context.lineTo(x, y));
  context.stroke();
}
