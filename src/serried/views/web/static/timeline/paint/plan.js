// Painting the plan: below each rank's tracks what was planned, and there the place of a chosen
// span.

import { pixel } from "../../base/theme.js";
import { AXIS } from "./picture.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../trace/plan.js").Plan} Plan */

/** The share of a row that the plan takes. */
export const FOOT = 0.3;
const BARS_FROM = 3;
const STRENGTH = 0.62;
const GREY = "#808a99";

/** The ink of planned spans of each colour. @typedef {Map<string, string>} Inks */
/** @typedef {{top: number, high: number}} Box */

/**
 * Draws the plan of every row in view, in grey where colours do not stand for actions.
 * @param {Plan} plan
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintPlan(plan, picture, context) {
  const { lines, scrolled, surface, tracks, colouring } = picture;
  const { first, last } = lines.between(scrolled, scrolled + surface.height - AXIS);
  const colours = new Set(Array.from(plan.kind, (kind) => tracks.actions.get(kind)?.colour ?? ""));
  const inks = new Map(
    Array.from(colours, (colour) => [colour, (colouring.legend === "actions" && colour) || GREY]),
  );
  for (const line of lines.lines.slice(first, last)) {
    if (line.row) paintRow(plan, picture, context, line.row.rank, footOf(picture, line), inks);
  }
  paintPlace(plan, picture, context, picture.selected);
}

/**
 * Returns where the plan of a line lies.
 * @param {Picture} picture
 * @param {{top: number, high: number}} line
 * @returns {Box}
 */
function footOf({ scrolled }, line) {
  const whole = line.high - 2;
  return {
    top: Math.round(AXIS + line.top - scrolled + 1 + whole * (1 - FOOT)) + 1,
    high: Math.max(2, Math.round(whole * FOOT) - 1),
  };
}

/**
 * @param {Plan} plan
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} rank
 * @param {Box} box
 * @param {Inks} inks
 */
function paintRow(plan, picture, context, rank, { top, high }, inks) {
  const { time, wide, toPixel, theme, tracks } = picture;
  context.fillStyle = theme.box;
  context.fillRect(toPixel(time.start), top - 1, wide, high + 2);
  if (plan.count(rank, time.start, time.end) * BARS_FROM > wide)
    return paintShares(plan, picture, context, rank, { top, high }, inks);
  context.globalAlpha = STRENGTH;
  for (const bar of plan.between(rank, time.start, time.end)) {
    const [left, right] = [toPixel(bar.start), toPixel(bar.end)];
    context.fillStyle = inks.get(tracks.actions.get(bar.kind)?.colour ?? "") ?? GREY;
    context.fillRect(left, top, Math.max(1, right - left - (right - left > 4 ? 1 : 0)), high);
  }
  context.globalAlpha = 1;
}

/**
 * Fills the row by exact shares where bars are too thin to draw.
 * @param {Plan} plan
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} rank
 * @param {Box} box
 * @param {Inks} inks
 */
function paintShares(
  plan,
  { time, wide, theme, tracks, toPixel },
  context,
  rank,
  { top, high },
  inks,
) {
  const colours = [...inks.keys()];
  const classOf = (/** @type {number} */ kind) =>
    colours.indexOf(tracks.actions.get(kind)?.colour ?? "");
  const count = Math.round(wide);
  const shares = plan.shares(rank, time.start, time.end, count, classOf, colours.length);
  const ground = pixel(theme.box);
  const pixels = [...inks.values()].map((ink) => pixel(ink));
  for (let x = 0; x < count; x++) {
    let all = 0;
    let mixed = [0, 0, 0];
    for (let c = 0; c < colours.length; c++) {
      const share = Math.min(1, shares[x * colours.length + c]) * STRENGTH;
      all += share;
      mixed = mixed.map((sum, i) => sum + share * ((pixels[c] >> (8 * i)) & 255));
    }
    if (all <= 0) continue;
    const [red, green, blue] = mixed.map((sum, i) =>
      Math.round(sum + Math.max(0, 1 - all) * ((ground >> (8 * i)) & 255)),
    );
    context.fillStyle = `rgb(${red} ${green} ${blue})`;
    context.fillRect(toPixel(time.start) + x, top, 1, high);
  }
}

/**
 * Outlines in the plan where a span was planned.
 * @param {Plan} plan
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} id
 */
export function paintPlace(plan, picture, context, id) {
  const { tracks, theme, toPixel, lines, selected } = picture;
  const span = tracks.span(id);
  const line = span && lines.of(tracks.rankOf(id));
  const planned = span && plan.of(tracks.rankOf(id), span);
  if (!planned || !line?.row) return;
  const { top, high } = footOf(picture, line);
  const left = toPixel(planned.start);
  context.lineWidth = id === selected ? 2 : 1.5;
  context.strokeStyle = id === selected ? theme.accent : theme.text;
  context.strokeRect(left, top, Math.max(2, toPixel(planned.end) - left - 1), high);
}
