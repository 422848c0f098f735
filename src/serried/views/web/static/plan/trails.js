// Painting traffic over the map: ribbons between boxes, lines between the ranks of a box.
//
//   within a node    pale, between cells, or as a bar at the foot of the box
//   between nodes    full, from box to box; kinds side by side, each apart from what it crosses

import { widthOf } from "./links.js";

/** @typedef {import("./links.js").Link} Link */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {{x: number, y: number, size: number}} Cell  its middle */
/**
 * @typedef {object} Spared  what is not to be drawn over
 * @property {{x: number, y: number, radius: number}[]} marks
 * @property {Box[]} names
 */
/**
 * @typedef {object} Trails
 * @property {CanvasRenderingContext2D} context
 * @property {number} width
 * @property {number} height
 * @property {Link[]} between        spots are boxes
 * @property {Link[]} bars           what stays in a box
 * @property {Link[]} within         spots are ranks
 * @property {(spot: number) => Box} boxOf
 * @property {(rank: number) => Cell | null} cellOf
 * @property {Spared} spared
 * @property {string[]} inks         of each flow
 * @property {string} edge           keeps what leaves a node apart from what it crosses
 * @property {number} most           bytes of the widest link
 * @property {number} widest         its pixels
 */

const PALE = 0.55;
const BULGE = 0.16;
const FAR = 1.7;
const BAR = 4;

/** Draws all links, what leaves a node above the rest, and none over marks and names. */
/** @param {Trails} trails */
export function paintTrails(trails) {
  const { bars, between, context, within } = trails;
  context.save();
  spare(trails);
  context.lineCap = "butt";
  for (const link of within) paintWithin(trails, link);
  for (const each of ribbons(bars)) paintBars(trails, each);
  for (const each of ribbons(between)) paintRibbon(trails, each);
  context.restore();
}

/** Keeps what is drawn from where marks and names show from below. @param {Trails} trails */
function spare({ context, height, spared: { marks, names }, width }) {
  if (!marks.length && !names.length) return;
  context.beginPath();
  for (const name of names) context.rect(name.x, name.y, name.width, name.height);
  context.rect(0, 0, width, height);
  for (const { x, y, radius } of marks) {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  }
  context.clip("evenodd");
}

/** Returns links by the spots that they join. @param {Link[]} links */
function ribbons(links) {
  /** @type {Map<string, Link[]>} */
  const found = new Map();
  for (const link of links) {
    const key = `${link.from} ${link.to}`;
    found.set(key, [...(found.get(key) ?? []), link]);
  }
  return found.values();
}

/** @param {Trails} trails @param {Link} link */
function paintWithin(
  { context, cellOf, edge, inks, most, widest },
  { across, bytes, flow, from, to },
) {
  const [one, other] = [cellOf(from), cellOf(to)];
  if (!one || !other) return;
  // Each kind ends at its own place at the foot of a cell, below the marks.
  const aside = one.size * (0.12 * (flow % 5) - 0.24);
  const foot = one.size * 0.4;
  const [x0, y0, x1, y1] = [one.x + aside, one.y + foot, other.x + aside, other.y + foot];
  const bend = { x: (x0 + x1) / 2 - BULGE * (y1 - y0), y: (y0 + y1) / 2 + BULGE * (x1 - x0) };
  context.globalAlpha = across ? 1 : PALE;
  const width = widthOf(bytes, most, widest);
  curve(context, { x0, y0, x1, y1, bend }, width, inks[flow], across ? edge : "");
  context.globalAlpha = 1;
}

/** @param {Trails} trails @param {Link[]} links  all of one box */
function paintBars({ bars, context, boxOf, inks }, links) {
  const most = Math.max(...bars.map(({ bytes }) => bytes));
  const { x, y, width, height } = boxOf(links[0].from);
  if (width < 3 * BAR) return;
  let foot = y + height - 1;
  for (const { across, bytes, flow } of links) {
    const high = Math.min(BAR, height / 6);
    const wide = Math.max(2, (width - 2) * Math.sqrt(bytes / most));
    context.globalAlpha = across ? 1 : PALE;
    context.fillStyle = inks[flow];
    context.fillRect(x + 1, foot - high, wide, high);
    foot -= high + 1;
  }
  context.globalAlpha = 1;
}

/** @param {Trails} trails @param {Link[]} links  all of one pair of boxes */
function paintRibbon({ context, boxOf, edge, inks, most, widest }, links) {
  const [one, other] = [boxOf(links[0].from), boxOf(links[0].to)];
  const [from, to] = [middle(one), middle(other)];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const side = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
  const widths = links.map(({ bytes }) => widthOf(bytes, most, widest));
  const all = widths.reduce((sum, width) => sum + width + 2, -2);
  const bow = length > FAR * Math.max(one.width, one.height) ? BULGE * length : 0;
  let at = -all / 2;
  links.forEach(({ across, flow }, i) => {
    const aside = at + widths[i] / 2;
    at += widths[i] + 2;
    const [a, b] = [shifted(from, side, aside), shifted(to, side, aside)];
    const [start, end] = bow ? [a, b] : [leave(a, b, one), leave(b, a, other)];
    const half = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
    const bend = shifted(half, side, bow);
    const ends = { x0: start.x, y0: start.y, x1: end.x, y1: end.y, bend };
    context.globalAlpha = across ? 0.9 : PALE;
    curve(context, ends, widths[i], inks[flow], across ? edge : "");
  });
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{x0: number, y0: number, x1: number, y1: number, bend: {x: number, y: number}}} ends
 * @param {number} width
 * @param {string} ink
 * @param {string} edge  "" for none
 */
function curve(context, { x0, y0, x1, y1, bend }, width, ink, edge) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.quadraticCurveTo(bend.x, bend.y, x1, y1);
  if (edge) {
    context.lineWidth = width + 2;
    context.strokeStyle = edge;
    context.stroke();
  }
  context.lineWidth = width;
  context.strokeStyle = ink;
  context.stroke();
}

/** @param {Box} box */
function middle({ x, y, width, height }) {
  return { x: x + width / 2, y: y + height / 2 };
}

/** @param {{x: number, y: number}} point @param {{x: number, y: number}} side @param {number} by */
function shifted({ x, y }, side, by) {
  return { x: x + by * side.x, y: y + by * side.y };
}

/**
 * Returns where the way from a point in a box to another leaves the box, a little inside.
 * @param {{x: number, y: number}} from
 * @param {{x: number, y: number}} to
 * @param {Box} box
 */
function leave(from, to, { x, y, width, height }) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const across = dx ? ((dx > 0 ? x + width : x) - from.x) / dx : Infinity;
  const along = dy ? ((dy > 0 ? y + height : y) - from.y) / dy : Infinity;
  const share = Math.max(0, Math.min(across, along) - 6 / (Math.hypot(dx, dy) || 1));
  return { x: from.x + share * dx, y: from.y + share * dy };
}
