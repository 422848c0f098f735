// Painting stacked schedules: dense rows and strips pixel by pixel, then boxes, lines and names.

import { numberText, unitTicks } from "../../base/quantity.js";
import { pixel } from "../../base/theme.js";
import { hasBoxes, paintBoxes, paintIdle, paintShares } from "./bars.js";
import { paintPath, paintSpots } from "./marks.js";
import { GUTTER, pictureOf } from "./picture.js";
import { paintLimit, paintStrip } from "./strips.js";

/** @typedef {import("../model/simulated.js").Simulated} Simulated */
/** @typedef {import("./picture.js").Picture} Picture */

const TICK_EVERY = 80;

/**
 * Draws all; returns how many actions were drawn one by one.
 * @param {import("./picture.js").Shown} shown
 */
export function paintSchedules(shown) {
  const { surface, theme, stack, pixels, scrolled, blocks } = shown;
  const picture = pictureOf(shown);
  /** @type {{data: Simulated, block: number, rank: number, top: number}[]} */
  const rows = [];
  blocks.forEach((data, block) => {
    if (!data) return;
    const { first, last } = stack.ranksBetween(block, scrolled, scrolled + surface.height);
    for (let rank = first; rank < last; rank++)
      rows.push({ data, block, rank, top: stack.rowTop(block, rank) - scrolled });
  });
  pixels.clear(surface.canvas.width, surface.canvas.height, pixel(theme.box));
  const drawn = rows.map((row) => paintRow(picture, row));
  const context = surface.begin();
  pixels.put(context);
  paintGutter(picture, context, rows);
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, surface.width - GUTTER, surface.height);
  context.clip();
  paintTickLines(picture, context);
  rows.forEach(
    ({ data, rank, top }, i) => drawn[i] >= 0 && paintIdle(picture, context, data, rank, top),
  );
  if (stack.strip) for (const { data, top } of rows) paintLimit(picture, context, data, top);
  if (shown.showPath) {
    for (const block of new Set(rows.map((row) => row.block))) {
      const data = blocks[block];
      if (data) paintPath(picture, context, data, block);
    }
  }
  paintSpots(picture, context);
  context.restore();
  return drawn.reduce((sum, boxes) => sum + Math.max(0, boxes), 0);
}

/**
 * Paints a row's bar and strip; returns how many boxes it has, -1 where actions are too thin for
 * boxes.
 * @param {Picture} picture
 * @param {{data: Simulated, rank: number, top: number}} row
 */
function paintRow(picture, { data, rank, top }) {
  const { surface, stack, pixels, theme, left } = picture;
  const scaled = (/** @type {number} */ y) => Math.round(y * surface.density);
  const [above, below] = [scaled(top), scaled(top + stack.bar)];
  let boxes = -1;
  if (hasBoxes(picture, data, rank)) {
    const from = Math.max(left, scaled(picture.toPixel(0)));
    pixels.box(
      from,
      above,
      scaled(picture.toPixel(data.header.makespan)),
      below,
      pixel(theme.cell),
    );
    boxes = paintBoxes(picture, data, rank, above, below);
  } else paintShares(picture, data, rank, above, below);
  if (stack.strip)
    paintStrip(
      picture,
      data,
      rank,
      scaled(top + stack.bar + 1),
      scaled(top + stack.bar + 1 + stack.strip),
    );
  return boxes;
}

/**
 * Names the rows.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {{data: Simulated, block: number, rank: number, top: number}[]} rows
 */
function paintGutter(picture, context, rows) {
  const { theme, stack, hovered, chosen } = picture;
  const size = Math.min(11.5, stack.bar - 2);
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { data, block, rank, top } of rows) {
    const isLit = [hovered, chosen].some((spot) => spot?.block === block && spot.rank === rank);
    const [name, stages] = picture.rowName(data, rank);
    const middle = top + stack.bar / 2 + 0.5;
    context.font = `${isLit ? 700 : 600} ${size}px ${theme.font}`;
    context.fillStyle = isLit ? theme.accent : theme.text;
    context.fillText(name, 8, middle);
    const from = 14 + context.measureText(name).width;
    context.font = `${size - 1}px ${theme.font}`;
    context.fillStyle = theme.faint;
    context.fillText(stages, from, middle, Math.max(1, GUTTER - 4 - from));
    if (stack.strip < 9) continue;
    context.textAlign = "right";
    context.font = `${Math.min(10, stack.strip + 1)}px ${theme.font}`;
    context.fillText(
      picture.peakName(data, rank),
      GUTTER - 5,
      top + stack.bar + 1 + stack.strip / 2 + 0.5,
    );
    context.textAlign = "left";
  }
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintTickLines({ time, surface, toPixel, theme }, context) {
  context.strokeStyle = theme.faint;
  context.globalAlpha = 0.22;
  context.lineWidth = 1;
  context.beginPath();
  for (const tick of unitTicks(time.start, time.end, (surface.width - GUTTER) / TICK_EVERY)) {
    const x = Math.round(toPixel(tick)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, surface.height);
  }
  context.stroke();
  context.globalAlpha = 1;
}

/**
 * Draws the axis above the stack.
 * @param {import("../../base/canvas/surface.js").Surface} surface
 * @param {import("../../base/canvas/window.js").TimeWindow} time
 * @param {import("../../base/theme.js").Theme} theme
 * @param {string} name
 * @param {number} at the moment under the pointer, NaN for none
 */
export function paintScheduleAxis(surface, time, theme, name, at) {
  const context = surface.begin();
  context.fillStyle = theme.box;
  context.fillRect(0, 0, surface.width, surface.height);
  context.font = `11px ${theme.font}`;
  context.textBaseline = "middle";
  context.fillStyle = theme.faint;
  context.fillText(name, 8, surface.height / 2, GUTTER - 12);
  const wide = surface.width - GUTTER;
  const toPixel = (/** @type {number} */ moment) =>
    GUTTER + ((moment - time.start) / time.span) * wide;
  for (const tick of unitTicks(time.start, time.end, wide / TICK_EVERY)) {
    const x = Math.round(toPixel(tick));
    if (x < GUTTER || x > surface.width - 30) continue;
    context.fillRect(x, surface.height - 5, 1, 5);
    context.fillText(numberText(tick), x + 4, surface.height / 2);
  }
  if (!(at >= time.start && at <= time.end)) return;
  const text = numberText(at);
  const x = Math.min(surface.width - context.measureText(text).width - 8, toPixel(at));
  context.fillStyle = theme.accent;
  context.fillRect(toPixel(at), 0, 1, surface.height);
  context.fillRect(x, 2, context.measureText(text).width + 8, surface.height - 6);
  context.fillStyle = theme.box;
  context.fillText(text, x + 4, surface.height / 2 - 0.5);
}
