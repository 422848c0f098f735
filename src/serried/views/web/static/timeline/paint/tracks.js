// Painting the tracks of the timeline pixel by pixel: spans one by one, exact shares where they are
// thin.
//
// A track is one line of pixels, repeated over its height; hatching and names are set on top.

import { mixed } from "../../base/canvas/pixels.js";
import { duration } from "../../base/clock.js";
import { pixel } from "../../base/theme.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../trace/sheet.js").Piece} Piece */
/** @typedef {import("../trace/sheet.js").Exact} Exact */
/** @typedef {import("../trace/sheet.js").Shares} Shares */
/** @typedef {import("../trace/sheet.js").Colouring} Colouring */
/**
 * @typedef {object} ShareSource
 * @property {(start: number, end: number, width: number) => Float32Array | Float64Array} shares
 */
/**
 * @typedef {object} Strip  in pixels of the screen
 * @property {Uint32Array} line
 * @property {number} left
 * @property {number} top
 * @property {number} bottom
 */

const RECTANGLES_FROM = 3;
const HATCHED_FROM = 6;
const HATCH = 6;
const PLANNED_PALER = 0.4;
/** What little of a pixel anything fills shows as this much of it: a short span stays visible. */
const LEAST_SHARE = 0.22;

/**
 * Draws a track; returns how many spans were drawn one by one.
 * @param {Picture} picture
 * @param {number} track
 * @param {number} top
 * @param {number} high in pixels of the page
 */
export function paintTrack(picture, track, top, high) {
  return paintPieces(
    picture,
    picture.tracks.sheets.map(({ tracks }) => tracks.get(track)),
    top,
    high,
  );
}

/**
 * Draws what the ranks of a folded group did, added up.
 * @param {Picture} picture
 * @param {string} key
 * @param {number} top
 * @param {number} high
 */
export function paintGroup(picture, key, top, high) {
  return paintPieces(
    picture,
    picture.tracks.sheets.map(({ groups }) => groups.get(key)),
    top,
    high,
  );
}

/**
 * Draws the pieces there are, the coarse ones first, so that finer ones lie on them.
 * @param {Picture} picture
 * @param {(Piece | undefined)[]} found
 * @param {number} top
 * @param {number} high
 */
function paintPieces(picture, found, top, high) {
  const { time, surface, pixels, theme, left, tracks } = picture;
  const scaled = (/** @type {number} */ y) => Math.round(y * surface.density);
  const line = new Uint32Array(Math.max(0, pixels.width - left));
  line.fill(pixel(theme.cell));
  /** @type {Strip} */
  const strip = {
    line,
    left,
    top: scaled(top),
    bottom: Math.max(scaled(top) + 1, scaled(top + high)),
  };
  const from = Math.max(0, time.start);
  const to = Math.min(tracks.total, time.end);
  const inView = /** @type {Piece[]} */ (
    found.filter((piece) => piece && piece.from < to && piece.to > from)
  );
  // Shares that were counted for other colours lie at the bottom, until the right ones come.
  const isStale = (/** @type {Piece} */ piece) =>
    Number(!("firstId" in piece) && piece.colouring.name !== picture.colouring.name);
  inView.sort((one, other) => isStale(one) - isStale(other) || one.bucket - other.bucket);
  const enough = inView.findIndex((piece) => piece.from <= from && piece.to >= to);
  const pieces = (enough < 0 ? inView : inView.slice(0, enough + 1)).reverse();
  /** @type {(() => void)[]} */
  const after = [];
  let drawn = 0;
  for (const piece of pieces) {
    if (!("firstId" in piece))
      mixShares(picture, piece, piece.colouring, line, piece.from, piece.to);
    else if (isThin(picture, piece))
      mixShares(
        picture,
        piece.coverage(picture.colouring),
        picture.colouring,
        line,
        piece.from,
        piece.to,
      );
    else drawn += paintSpans(picture, piece, strip, after);
  }
  if (tracks.isPlanned) pale(line, pixel(theme.cell));
  pixels.line(line, left, strip.top, strip.bottom);
  for (const each of after) each();
  return drawn;
}

/**
 * Makes what is planned paler than anything that ran.
 * @param {Uint32Array} line
 * @param {number} cell
 */
function pale(line, cell) {
  for (let x = 0; x < line.length; x++)
    if (line[x] !== cell) line[x] = mixed(line[x], cell, PLANNED_PALER);
}

/**
 * Tells whether the spans in view are too thin for one box each.
 * @param {Picture} picture
 * @param {Exact} piece
 */
function isThin({ time, wide }, piece) {
  const { first, last } = piece.between(time.start, time.end);
  if (last <= first) return false;
  const pixels = (piece.spans.end[last - 1] - piece.spans.start[first]) * (wide / time.span);
  return pixels / (last - first) < RECTANGLES_FROM;
}

/**
 * Mixes into each pixel the colours of what ran in its time.
 * @param {Picture} picture
 * @param {ShareSource} source
 * @param {Colouring} colouring
 * @param {Uint32Array} line
 * @param {number} from
 * @param {number} to  the stretch that the source knows
 */
function mixShares(
  { time, theme, pixels, left, surface, toPixel, inks },
  source,
  colouring,
  line,
  from,
  to,
) {
  const scaled = (/** @type {number} */ at) => Math.round(toPixel(at) * surface.density) - left;
  const first = from > time.start ? Math.max(0, scaled(from)) : 0;
  const last = to < time.end ? Math.min(line.length, scaled(to)) : line.length;
  if (last <= first) return;
  const perPixel = time.span / (pixels.width - left);
  const shares = source.shares(
    time.start + first * perPixel,
    time.start + last * perPixel,
    last - first,
  );
  const num = colouring.colours.length;
  const parts = inks(colouring).map(channels);
  const [r0, g0, b0] = channels(pixel(theme.cell));
  for (let x = first, at = 0; x < last; x++) {
    let [r, g, b, all] = [0, 0, 0, 0];
    for (let c = 0; c < num; c++, at++) {
      const share = shares[at];
      if (share <= 1e-9) continue;
      all += share;
      r += share * parts[c][0];
      g += share * parts[c][1];
      b += share * parts[c][2];
    }
    if (all > 0) {
      const strength = all > 1 ? 1 / all : all < LEAST_SHARE ? LEAST_SHARE / all : 1;
      const idle = 1 - all * strength;
      line[x] = rgb(r * strength + idle * r0, g * strength + idle * g0, b * strength + idle * b0);
    } else line[x] = rgb(r0, g0, b0);
  }
}

/**
 * @param {Picture} picture
 * @param {Exact} piece
 * @param {Strip} strip
 * @param {(() => void)[]} after  what is drawn once the line is in place
 */
function paintSpans(picture, piece, strip, after) {
  const { time, theme, toPixel, surface, colouring, tracks } = picture;
  const { density } = surface;
  const { spans } = piece;
  const { line, left } = strip;
  const { first, last } = piece.between(
    Math.max(piece.from, time.start),
    Math.min(piece.to, time.end),
  );
  const classes = spans.classes(colouring);
  const colours = picture.inks(colouring);
  const cell = pixel(theme.cell);
  const clip = (/** @type {number} */ at) =>
    Math.min(line.length, Math.max(0, toPixel(at) * density - left));
  const [floor, ceiling] = [clip(piece.from), clip(piece.to)];
  line.fill(cell, Math.round(floor), Math.round(ceiling));
  for (let i = first; i < last; i++) {
    const from = Math.max(floor, clip(spans.start[i]));
    const until = Math.min(ceiling, clip(spans.end[i]));
    const wide = (until - from) / density;
    const to = wide > 4 ? until - density : Math.max(until, Math.min(ceiling, from + density));
    fill(line, from, to, colours[classes[i]]);
    const isHatched =
      wide > HATCHED_FROM && colouring.legend === "actions" && tracks.waits.has(spans.kind[i]);
    if (isHatched)
      after.push(() =>
        hatch(
          picture,
          strip,
          Math.round(from),
          Math.round(to),
          Math.round(toPixel(spans.start[i]) * density),
        ),
      );
    else if (wide >= 15 && picture.glyphs)
      after.push(() => label(picture, strip, piece, i, from, to));
  }
  return last - first;
}

/**
 * Fills [from, to) of a line, its ends by the part of their pixel.
 * @param {Uint32Array} line
 * @param {number} from
 * @param {number} to
 * @param {number} colour
 */
function fill(line, from, to, colour) {
  const [first, last] = [Math.ceil(from), Math.floor(to)];
  if (last < first) {
    if (last >= 0 && last < line.length) line[last] = mixed(line[last], colour, to - from);
    return;
  }
  if (first > from) line[first - 1] = mixed(line[first - 1], colour, first - from);
  line.fill(colour, first, last);
  if (to > last && last < line.length) line[last] = mixed(line[last], colour, to - last);
}

/**
 * Draws slanting lines over what waits, for colour must not stand alone; they move with it.
 * @param {Picture} picture
 * @param {Strip} strip
 * @param {number} from
 * @param {number} to
 * @param {number} origin
 */
function hatch({ pixels, theme, surface }, { left, top, bottom }, from, to, origin) {
  pixels.slant({
    ...{ left: left + from, right: left + to, top, bottom, origin, slope: 1, thick: 1 },
    period: Math.round(HATCH * surface.density),
    colour: pixel(theme.wait_line),
  });
}

/**
 * Writes a span's name, and how long it took where there is room.
 * @param {Picture} picture
 * @param {Strip} strip
 * @param {Exact} piece
 * @param {number} i
 * @param {number} from
 * @param {number} to
 */
function label(picture, { left, top, bottom }, { spans }, i, from, to) {
  const { glyphs, pixels, theme, tracks, surface } = picture;
  if (!glyphs || bottom - top < 0.8 * glyphs.high) return;
  const room = to - from - 4 * surface.density;
  const name = tracks.actionName({
    kind: spans.kind[i],
    stage: spans.stage[i],
    microbatch: spans.microbatch[i],
    named: spans.named[i],
  });
  const short = glyphs.width(name);
  if (short > room) return;
  const long = room > 2.2 * short ? `${name}  ${duration(spans.end[i] - spans.start[i])}` : name;
  const text = glyphs.width(long) < room ? long : name;
  glyphs.draw(pixels, text, left + (from + to) / 2, (top + bottom) / 2, pixel(theme.letters), 1);
}

/** @param {number} colour a pixel */
function channels(colour) {
  return [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
}

/** @param {number} r @param {number} g @param {number} b */
function rgb(r, g, b) {
  return (0xff000000 | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}
