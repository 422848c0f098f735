// Painting a rank's time: exact shares of what ran where actions are thin, and idle time named.

import { countUpTo } from "../../base/coverage.js";
import { mixed } from "../../base/canvas/pixels.js";
import { pixel } from "../../base/theme.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../model/simulated.js").Simulated} Simulated */

/** From this many pixels on, on average, each action has a box. */
export const BOXES_FROM = 4;
/** How much of white the boxes of a rank's last stage have. */
const PALEST = 0.42;
/** How much of the ground shows through what is beside the critical path. */
export const DIMMED = 0.62;
/** Textures of the causes, by number. */
const CAUSE_TEXTURES = ["", "", "dots", "cross", "dots", "", "dots"];

/**
 * Returns the colour of a kind for the `chunk`-th stage of a rank, paler from stage to stage.
 * @param {string} colour
 * @param {number} chunk
 * @param {number} chunks
 */
export function shade(colour, chunk, chunks) {
  return chunks < 2
    ? pixel(colour)
    : mixed(pixel(colour), 0xffffffff, (PALEST * chunk) / (chunks - 1));
}

/**
 * Fills a row by shares: each pixel mixes the colours of what ran in its time.
 * @param {Picture} picture
 * @param {Simulated} data
 * @param {number} rank
 * @param {number} top
 * @param {number} bottom in pixels of the screen
 */
export function paintShares(picture, data, rank, top, bottom) {
  const { pixels, time, theme, showPath, left } = picture;
  const count = pixels.width - left;
  const shares = data.coverage(rank).shares(time.start, time.end, count);
  const chunks = data.header.stages_per_rank;
  const cell = pixel(theme.cell);
  // The mean of the shades of all stages, so that zooming does not change the colour.
  const colours = data.kinds.map(({ colour }) =>
    chunks < 2 ? pixel(colour) : mixed(pixel(colour), 0xffffffff, PALEST / 2),
  );
  const parts = colours.map((colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255]);
  const line = new Uint32Array(count);
  const [r0, g0, b0] = [cell & 255, (cell >> 8) & 255, (cell >> 16) & 255];
  const start = Math.max(0, Math.floor(((0 - time.start) / time.span) * count));
  const end = Math.min(count, Math.ceil(((data.header.makespan - time.start) / time.span) * count));
  const ground = pixel(theme.box);
  const strength = showPath ? 1 - DIMMED : 1;
  for (let x = 0; x < count; x++) {
    if (x < start || x >= end) {
      line[x] = ground;
      continue;
    }
    let [r, g, b] = [r0, g0, b0];
    for (let c = 0; c < parts.length; c++) {
      const share = shares[x * parts.length + c] * strength;
      r += share * (parts[c][0] - r0);
      g += share * (parts[c][1] - g0);
      b += share * (parts[c][2] - b0);
    }
    line[x] = (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
  }
  pixels.line(line, left, top, bottom);
}

/**
 * Names the idle intervals in view, and gives them their textures.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Simulated} data
 * @param {number} rank
 * @param {number} top
 */
export function paintIdle(picture, context, data, rank, top) {
  const { time, surface, stack, toPixel, gutter, theme, textures } = picture;
  const { bounds, start, end, cause } = data.idle;
  const size = Math.min(10.5, stack.bar - 3);
  context.font = `${size}px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const [first, last] = [bounds[rank], bounds[rank + 1]];
  const from = first + countUpTo(end.subarray(first, last), time.start);
  for (let i = from; i < last && start[i] <= time.end; i++) {
    const left = Math.max(gutter, toPixel(start[i]));
    const wide = Math.min(surface.width, toPixel(end[i])) - left;
    if (wide < 6) continue;
    const texture = textures.get(CAUSE_TEXTURES[cause[i]]);
    if (texture) {
      context.fillStyle = texture;
      context.fillRect(left, top, wide, stack.bar);
    }
    const name = picture
      .causeName(data, i)
      .find((each) => context.measureText(each).width < wide - 6);
    if (!name) continue;
    context.fillStyle = theme.faint;
    context.fillText(name, left + wide / 2, top + stack.bar / 2 + 0.5);
  }
}
