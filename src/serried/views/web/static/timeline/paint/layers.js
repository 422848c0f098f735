// What lies over the tracks: outlines of what is chosen, arrows from senders to receivers, the
// range.

import { AXIS, GUTTER } from "./picture.js";

/** @typedef {import("./picture.js").Picture} Picture */

const HEAD = 5;

/**
 * Outlines the span that is selected, and its microbatch on all of its pipeline.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintChosen(picture, context) {
  const { theme, selected, links } = picture;
  for (const span of links?.spans ?? []) outline(picture, context, span, theme.text, 1);
  outline(picture, context, selected, theme.accent, 2.5);
}

/**
 * Outlines the span under the pointer, unless it is selected.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintHovered(picture, context) {
  const { theme, selected, hovered } = picture;
  if (hovered !== selected) outline(picture, context, hovered, theme.text, 2);
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} id
 * @param {string} colour
 * @param {number} width
 */
function outline(picture, context, id, colour, width) {
  const { tracks, time, toPixel, surface } = picture;
  const span = tracks.span(id);
  if (!span || span.end < time.start || span.start > time.end) return;
  const box = picture.boxOf(id);
  if (!box || box.top > surface.height || box.top + box.high < AXIS) return;
  const left = Math.max(GUTTER - 4, toPixel(span.start));
  const right = Math.min(surface.width + 4, Math.max(left + 2, toPixel(span.end)));
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(left, box.top, right - left - 1, box.high);
}

/**
 * Draws an arrow for each hand-over of the selected microbatch, strong for the selected span's own.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintArrows(picture, context) {
  const { links, selected, theme } = picture;
  if (!links) return;
  for (let i = 0; i < links.from.length; i++) {
    const own = links.from[i] === selected || links.to[i] === selected;
    context.strokeStyle = context.fillStyle = own ? theme.accent : theme.text;
    context.globalAlpha = own ? 1 : 0.55;
    context.lineWidth = own ? 2 : 1;
    arrow(picture, context, links.from[i], links.to[i], own);
  }
  context.globalAlpha = 1;
}

/**
 * Draws an arrow from the end of one span to the start of another; one whose start lies before has
 * a dashed line.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} from
 * @param {number} to
 * @param {boolean} own
 */
function arrow(picture, context, from, to, own) {
  const { tracks, time, toPixel, surface } = picture;
  const [sender, receiver] = [tracks.span(from), tracks.span(to)];
  if (!sender || !receiver) return;
  if (
    Math.max(sender.end, receiver.start) < time.start ||
    Math.min(sender.end, receiver.start) > time.end
  )
    return;
  const [above, below] = [picture.boxOf(from), picture.boxOf(to)];
  if (!above || !below) return;
  // A message is sent while its receiver waits, so it arrives when that wait ends.
  const arrival = tracks.waits.has(receiver.kind) ? receiver.end : receiver.start;
  const [x0, y0] = [toPixel(sender.end), above.top + above.high / 2];
  const [x1, y1] = [toPixel(arrival), below.top + below.high / 2];
  if (Math.min(y0, y1) > surface.height || Math.max(y0, y1) < AXIS) return;
  const bend = Math.min(40, Math.max(10, Math.abs(x1 - x0) / 2));
  context.setLineDash(arrival < sender.end ? [4, 3] : []);
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.stroke();
  context.setLineDash([]);
  const size = own ? HEAD + 1.5 : HEAD;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - size, y1 - size / 2);
  context.lineTo(x1 - size, y1 + size / 2);
  context.fill();
}

/**
 * Marks the range that was drawn with Shift held, apart where its ranks stand apart.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintRange({ range, toPixel, theme, lines, scrolled, surface }, context) {
  if (!range) return;
  const from = Math.max(-10, toPixel(range.start));
  const to = Math.min(surface.width + 10, toPixel(range.end));
  context.fillStyle = context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  for (const { top, bottom } of lines.stretches(range.ranks)) {
    const above = AXIS - scrolled + top;
    context.globalAlpha = 0.13;
    context.fillRect(from, above, to - from, bottom - top);
    context.globalAlpha = 1;
    context.strokeRect(from, above + 0.5, to - from, bottom - top - 1);
  }
}
