// Painting a bar of a rank: boxes, or exact shares where actions are thin; idle time is named.

import { mixed } from "../../base/canvas/pixels.js";
import { countUpTo } from "../../base/coverage.js";
import { pixel } from "../../base/theme.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../model/simulated.js").Simulated} Simulated */
/**
 * @typedef {object} Look  pixels, as they are and beside the critical path
 * @property {number} colour
 * @property {number} dim
 * @property {number} line
 * @property {number} dimLine
 * @property {number} slope
 * @property {boolean} isFirst
 */

/** From this many pixels on, on average, each action has a box. */
const BOXES_FROM = 4;
/** How much of white the boxes of a rank's last stage have. */
const PALEST = 0.42;
/** How much of the ground shows through what is beside the critical path. */
const DIMMED = 0.62;
/** Textures of the causes, by number. */
const CAUSE_TEXTURES = ["", "", "dots", "cross", "dots", "", "dots"];
/**
 * Falling or rising lines stand beside the colours of the halves of a backward.
 * @type {Record<string, number>}
 */
const SLOPES = { I: 1, W: -1 };
const TEXTURE = 6;
const TEXTURE_STRENGTH = 0.2;
const STRIPE_FROM = 6;

/**
 * Tells whether the actions in view of a rank are wide enough for a box each.
 * @param {Picture} picture
 * @param {Simulated} data
 * @param {number} rank
 */
export function hasBoxes({ time, surface, gutter }, data, rank) {
  const { first, last } = data.between(rank, time.start, time.end);
  if (last <= first) return true;
  const pixels =
    (data.drawn.end[last - 1] - data.drawn.start[first]) * ((surface.width - gutter) / time.span);
  return pixels / (last - first) >= BOXES_FROM;
}

/**
 * Draws a box for each action in view of a rank; returns how many.
 * @param {Picture} picture
 * @param {Simulated} data
 * @param {number} rank
 * @param {number} top
 * @param {number} bottom in pixels of the screen
 */
export function paintBoxes(picture, data, rank, top, bottom) {
  const { time, surface, toPixel, left: gutter, pixels, showPath } = picture;
  const { density } = surface;
  const { first, last } = data.between(rank, time.start, time.end);
  const looks = looksOf(picture, data);
  const chunks = data.header.stages_per_rank;
  const gap = Math.max(1, Math.round(density));
  for (let entry = first; entry < last; entry++) {
    const from = Math.round(toPixel(data.drawn.start[entry]) * density);
    const until = Math.round(toPixel(data.drawn.end[entry]) * density);
    const right = until - from > 5 * density ? until - gap : until;
    const look = looks[data.class[entry] * chunks + data.chunk(rank, entry)];
    const isDim = showPath && !data.critical[entry];
    const [left, end] = [Math.max(gutter, from), Math.min(pixels.width, right)];
    if (end <= left) continue;
    pixels.box(left, top, end, bottom, isDim ? look.dim : look.colour);
    if (look.slope)
      pixels.slant({
        ...{ left, right: end, top, bottom, origin: from, slope: look.slope },
        period: Math.round(TEXTURE * density),
        thick: Math.max(1, Math.round(density)),
        colour: isDim ? look.dimLine : look.line,
      });
    if (look.isFirst && right - from >= STRIPE_FROM * density) {
      pixels.box(
        Math.max(left, from + gap),
        top + gap,
        Math.min(end, right - gap),
        top + gap + Math.round(2 * density),
        isDim ? look.dim : 0xffffffff,
      );
    }
    label(picture, data, entry, left, end, (top + bottom) / 2, isDim);
  }
  if (data.hasPairs)
    for (let entry = first; entry < last; entry++)
      if (data.joined[entry]) frame(picture, data, entry, top, bottom);
  return last - first;
}

/**
 * Returns the looks of a schedule's actions, by class and chunk.
 * @param {Picture} picture
 * @param {Simulated} data
 * @returns {Look[]}
 */
function looksOf({ theme }, data) {
  const chunks = data.header.stages_per_rank;
  const [cell, ink] = [pixel(theme.cell), pixel(theme.letters)];
  return data.kinds.flatMap(({ name, colour }) =>
    Array.from({ length: chunks }, (_, chunk) => {
      const full = shade(colour, chunk, chunks);
      const dim = mixed(full, cell, DIMMED);
      return {
        colour: full,
        dim,
        line: mixed(full, ink, TEXTURE_STRENGTH),
        dimLine: mixed(dim, ink, TEXTURE_STRENGTH / 3),
        slope: SLOPES[name] ?? 0,
        isFirst: chunks > 1 && chunk === 0,
      };
    }),
  );
}

/**
 * Writes an action's letter and microbatch in its box, or the microbatch alone, if there is room.
 * @param {Picture} picture
 * @param {Simulated} data
 * @param {number} entry
 * @param {number} left
 * @param {number} right
 * @param {number} middle
 * @param {boolean} isDim
 */
function label({ pixels, glyphs, theme }, data, entry, left, right, middle, isDim) {
  const room = right - left;
  const number = String(data.microbatch[entry]);
  const wide = glyphs.width(number);
  if (wide > room) return;
  const letter = data.kinds[data.class[entry]].name;
  const text = wide + glyphs.width(letter) < room ? letter + number : number;
  glyphs.draw(pixels, text, (left + right) / 2, middle, pixel(theme.letters), isDim ? 0.45 : 1);
}

/**
 * Frames an overlapped pair, whose halves run at the same time.
 * @param {Picture} picture
 * @param {Simulated} data
 * @param {number} entry
 * @param {number} top
 * @param {number} bottom
 */
function frame({ pixels, toPixel, surface, theme, left: gutter }, data, entry, top, bottom) {
  const { density } = surface;
  const line = Math.max(1, Math.round(density));
  const ink = pixel(theme.text);
  const from = Math.round(toPixel(data.times.start[entry]) * density);
  const right = Math.round(toPixel(data.times.end[entry]) * density) - line;
  const left = Math.max(gutter, from);
  if (right <= left) return;
  pixels.box(left, top, right, top + line, ink);
  pixels.box(left, bottom - line, right, bottom, ink);
  if (from >= gutter) pixels.box(from, top, from + line, bottom, ink);
  pixels.box(Math.max(left, right - line), top, right, bottom, ink);
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

/**
 * Returns the colour of a kind for the `chunk`-th stage of a rank, paler from stage to stage.
 * @param {string} colour
 * @param {number} chunk
 * @param {number} chunks
 */
function shade(colour, chunk, chunks) {
  return chunks < 2
    ? pixel(colour)
    : mixed(pixel(colour), 0xffffffff, (PALEST * chunk) / (chunks - 1));
}
