// Painting the plan: below each rank's tracks what was planned, and dashed where a span was to be.

import { css, pixel } from "./theme.js";
import { AXIS } from "./timelinepaint.js";

/** @typedef {import("./timelinepaint.js").Picture} Picture */
/** @typedef {import("./timelineplan.js").Plan} Plan */

/** The share of a row that the plan takes. */
export const FOOT = 0.3;
const BARS_FROM = 3;
const STRENGTH = 0.62;

/** Draws the plan of every row in view. @param {Plan} plan @param {Picture} picture @param {CanvasRenderingContext2D} context */
export function paintPlan(plan, picture, context) {
  const { lines, scrolled, surface, tracks } = picture;
  const { first, last } = lines.between(scrolled, scrolled + surface.height - AXIS);
  const colours = [...new Set(Array.from(plan.kind, (kind) => tracks.actions.get(kind)?.colour ?? ""))];
  for (const line of lines.lines.slice(first, last)) {
    if (!line.row) continue;
    const whole = line.high - 2;
    const top = Math.round(AXIS + line.top - scrolled + 1 + whole * (1 - FOOT)) + 1;
    paintRow(plan, picture, context, line.row.rank, { top, high: Math.max(2, Math.round(whole * FOOT) - 1) }, colours);
  }
  paintPlaces(plan, picture, context);
}

/**
 * @param {Plan} plan @param {Picture} picture @param {CanvasRenderingContext2D} context
 * @param {number} rank @param {{top: number, high: number}} box @param {string[]} colours
 */
function paintRow(plan, picture, context, rank, { top, high }, colours) {
  const { time, wide, toPixel, theme, tracks } = picture;
  context.fillStyle = theme.box;
  context.fillRect(toPixel(time.start), top - 1, wide, high + 2);
  if (plan.count(rank, time.start, time.end) * BARS_FROM > wide) return paintShares(plan, picture, context, rank, { top, high }, colours);
  context.globalAlpha = STRENGTH;
  for (const bar of plan.between(rank, time.start, time.end)) {
    const [left, right] = [toPixel(bar.start), toPixel(bar.end)];
    context.fillStyle = tracks.actions.get(bar.kind)?.colour ?? theme.faint;
    context.fillRect(left, top, Math.max(1, right - left - (right - left > 4 ? 1 : 0)), high);
  }
  context.globalAlpha = 1;
}

/**
 * Fills the row by exact shares where bars are too thin to draw.
 * @param {Plan} plan @param {Picture} picture @param {CanvasRenderingContext2D} context
 * @param {number} rank @param {{top: number, high: number}} box @param {string[]} colours
 */
function paintShares(plan, { time, wide, theme, tracks, toPixel }, context, rank, { top, high }, colours) {
  const classOf = (/** @type {number} */ kind) => colours.indexOf(tracks.actions.get(kind)?.colour ?? "");
  const count = Math.round(wide);
  const shares = plan.shares(rank, time.start, time.end, count, classOf, colours.length);
  const ground = pixel(theme.box);
  const inks = colours.map((colour) => pixel(colour || css(0x808080)));
  for (let x = 0; x < count; x++) {
    let all = 0;
    let mixed = [0, 0, 0];
    for (let c = 0; c < colours.length; c++) {
      const share = Math.min(1, shares[x * colours.length + c]) * STRENGTH;
      all += share;
      mixed = mixed.map((sum, i) => sum + share * ((inks[c] >> (8 * i)) & 255));
    }
    if (all <= 0) continue;
    const [red, green, blue] = mixed.map((sum, i) => Math.round(sum + Math.max(0, 1 - all) * ((ground >> (8 * i)) & 255)));
    context.fillStyle = `rgb(${red} ${green} ${blue})`;
    context.fillRect(toPixel(time.start) + x, top, 1, high);
  }
}

/** Dashes where the selected and the hovered span were planned, and joins each to its place. @param {Plan} plan @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintPlaces(plan, picture, context) {
  const { tracks, theme, toPixel, selected, hovered } = picture;
  context.setLineDash([4, 3]);
  context.lineWidth = 1.5;
  for (const id of new Set([selected, hovered])) {
    const span = tracks.span(id);
    const box = span && picture.boxOf(id);
    const planned = span && plan.of(tracks.rankOf(id), span);
    if (!planned || !box) continue;
    const [left, right] = [toPixel(planned.start), toPixel(planned.end)];
    context.strokeStyle = id === selected ? theme.accent : theme.text;
    context.strokeRect(left, box.top + 2, right - left - 1, box.high - 4);
  }
  context.setLineDash([]);
}
