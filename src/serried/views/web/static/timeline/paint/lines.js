// Painting the timeline: a line per rank or group, time to the right; then layers, axis and names.

import { ticks } from "../../base/clock.js";
import { pixel } from "../../base/theme.js";
import { laneBox } from "../trace/tracks.js";
import { AXIS, GUTTER, pictureOf } from "./picture.js";
import { TICKS, paintDown, paintSteps } from "./steps.js";
import { paintGroup, paintTrack } from "./tracks.js";

/** @typedef {import("../trace/rows.js").Line} Line */
/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./picture.js").Shown} Shown */

const MARKS = 46;

/** Draws the timeline; returns how many spans were drawn one by one. @param {Shown} shown */
export function paintTimeline(shown) {
  const { surface, theme, lines, scrolled, pixels } = shown;
  const picture = pictureOf(shown);
  const { first, last } = lines.between(scrolled, scrolled + surface.height - AXIS);
  const inView = lines.lines.slice(first, last);
  pixels.clear(surface.canvas.width, surface.canvas.height, pixel(theme.box));
  const drawn = inView.reduce((sum, line) => sum + paintLine(picture, line), 0);
  const context = surface.begin();
  pixels.put(context);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, surface.width, surface.height - AXIS);
  context.clip();
  for (const line of inView) {
    if (line.row) paintName(picture, context, line, line.row);
    else paintHeading(picture, context, line);
  }
  context.beginPath();
  context.rect(GUTTER - 1, AXIS, picture.wide + 1, surface.height - AXIS);
  context.clip();
  paintTickLines(picture, context);
  for (const layer of shown.layers) {
    context.save();
    layer(picture, context);
    context.restore();
  }
  context.restore();
  paintAxis(picture, context);
  paintScrollbar(picture, context);
  return drawn;
}

/**
 * Paints the tracks of a line; returns how many spans were drawn one by one.
 * @param {Picture} picture
 * @param {Line} line
 */
function paintLine(picture, { row, group, folded, top: at, high }) {
  const top = AXIS + at - picture.scrolled;
  if (!row)
    return folded
      ? paintGroup(picture, `${picture.lines.grouping?.by}:${group}`, top + 3, high - 6)
      : 0;
  const filled = (high - 2) * (1 - picture.foot);
  let drawn = 0;
  for (let lane = 0; lane < row.lanes; lane++) {
    const box = laneBox(lane, row.lanes);
    drawn += paintTrack(picture, row.track + lane, top + 1 + box.top * filled, box.height * filled);
  }
  return drawn;
}

/**
 * Writes beside a line whose it is, strongly where that rank is the one that is meant.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Line} line
 * @param {import("../trace/tracks.js").Row} row
 * @param {boolean} [isSelf]
 */
export function paintName(picture, context, line, row, isSelf = false) {
  const { theme, lines } = picture;
  const top = AXIS + line.top - picture.scrolled;
  context.fillStyle = theme.accent;
  if (isSelf) context.fillRect(0, top, GUTTER - 4, line.high - 1);
  const [name, place] = picture.names.row(row);
  const size = Math.min(11.5, line.high - 3);
  const middle = top + line.high / 2 + 0.5;
  const indent = lines.grouping ? 18 : 8;
  context.font = `600 ${size}px ${theme.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = isSelf ? theme.box : theme.text;
  context.fillText(name, indent, middle);
  const from = indent + 8 + context.measureText(name).width;
  context.font = `${size}px ${theme.font}`;
  if (!isSelf) context.fillStyle = theme.faint;
  context.fillText(place, from, middle, Math.max(1, GUTTER - MARKS - from));
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context @param {Line} line */
function paintHeading(picture, context, line) {
  const { theme, names, surface, lines, scrolled } = picture;
  if (!lines.grouping) return;
  const top = AXIS + line.top - scrolled;
  const middle = top + line.high / 2 + 0.5;
  context.fillStyle = theme.edge;
  context.fillRect(0, top, line.folded ? GUTTER - 4 : surface.width, 1);
  context.fillStyle = theme.faint;
  context.beginPath();
  const [x, y] = [11, middle - 0.5];
  if (line.folded)
    (context.moveTo(x - 2.5, y - 4.5),
      context.lineTo(x + 3.5, y),
      context.lineTo(x - 2.5, y + 4.5));
  else
    (context.moveTo(x - 4.5, y - 2.5),
      context.lineTo(x + 4.5, y - 2.5),
      context.lineTo(x, y + 3.5));
  context.fill();
  const [name, size, busy] = names.group(lines.grouping, line.group);
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.font = `600 11.5px ${theme.font}`;
  context.fillStyle = theme.text;
  context.fillText(name, 20, middle, 76);
  const from = 28 + Math.min(76, context.measureText(name).width);
  context.font = `11px ${theme.font}`;
  context.fillStyle = theme.faint;
  const text = line.folded ? busy : size;
  context.fillText(text, from, middle, line.folded ? Math.max(1, GUTTER - 8 - from) : undefined);
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintAxis(picture, context) {
  const { surface, theme, wide } = picture;
  context.fillStyle = theme.box;
  context.fillRect(0, 0, surface.width, AXIS);
  context.font = `11px ${theme.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.lineWidth = 1;
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, wide, surface.height);
  context.clip();
  for (const { time: at, label } of ticksOf(picture)) {
    const x = Math.round(picture.toPixel(at)) + 0.5;
    paintDown(context, x, TICKS - 5, TICKS, theme.faint, 0.6);
    context.fillStyle = theme.faint;
    if (x + 4 + context.measureText(label).width <= surface.width)
      context.fillText(label, x + 4, TICKS / 2 + 1);
  }
  paintSteps(picture, context);
  context.restore();
  context.strokeStyle = theme.edge;
  context.beginPath();
  context.moveTo(0, AXIS - 0.5);
  context.lineTo(surface.width, AXIS - 0.5);
  context.stroke();
}

/** @param {Picture} picture */
function ticksOf({ time, wide }) {
  return ticks(time.start, time.end, Math.max(2, wide / 95));
}

/**
 * Draws the lines of the ticks.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
function paintTickLines(picture, context) {
  for (const { time } of ticksOf(picture)) {
    const x = Math.round(picture.toPixel(time)) + 0.5;
    if (x > GUTTER) paintDown(context, x, AXIS, picture.surface.height, picture.theme.faint, 0.25);
  }
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintScrollbar({ surface, theme, lines, scrolled }, context) {
  const shown = surface.height - AXIS;
  const all = lines.height;
  if (all <= shown) return;
  context.fillStyle = theme.faint;
  context.globalAlpha = 0.6;
  const high = Math.max(20, (shown * shown) / all);
  const top = AXIS + (scrolled / (all - shown)) * (shown - high);
  context.beginPath();
  context.roundRect(surface.width - 7, top, 5, high, 2.5);
  context.fill();
  context.globalAlpha = 1;
}
