// Painting the strips: how many activations each rank holds, at every moment, under its limit.

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../model/simulated.js").Simulated} Simulated */

/**
 * Paints a strip; what is above the limit in another colour.
 * @param {Picture} picture
 * @param {Simulated} data
 * @param {number} rank
 * @param {number} top
 * @param {number} bottom in pixels of the screen
 */
export function paintStrip(picture, data, rank, top, bottom) {
  const { pixels, time, left, scale, colours } = picture;
  const tops = new Float64Array(pixels.width - left);
  data.level(rank).peaks(time.start, time.end, tops.length, tops);
  const { limit, parts } = data.header;
  const unit = (bottom - top) / (scale * parts);
  for (let x = 0; x < tops.length; x++) tops[x] *= unit;
  const line = limit === null ? Infinity : limit * unit;
  pixels.columns(tops, left, top, bottom, { ...colours, line: line + 0.5 });
}

/**
 * Draws the limit over a strip.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Simulated} data
 * @param {number} top in pixels of the page
 */
export function paintLimit({ stack, gutter, scale, theme, toPixel, surface }, context, data, top) {
  const { limit, parts, makespan } = data.header;
  if (limit === null) return;
  const y = Math.round(top + stack.bar + 1 + stack.strip * (1 - limit / parts / scale)) + 0.5;
  context.strokeStyle = theme.alarm;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(Math.max(gutter, toPixel(0)), y);
  context.lineTo(Math.min(surface.width, toPixel(makespan)), y);
  context.stroke();
  context.setLineDash([]);
}
