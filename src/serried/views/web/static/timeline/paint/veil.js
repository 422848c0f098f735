// Dims a timeline but for some of its spans: a veil over the tracks with a hole for each of them.

import { merged } from "../../base/coverage.js";
import { laneBox } from "../trace/tracks.js";
import { AXIS, GUTTER } from "./picture.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../trace/sheet.js").Exact} Exact */
/** @typedef {import("../trace/sheet.js").SpanColumns} SpanColumns */

const LEAST_WIDE = 1.5;

/**
 * Draws the veil. Where only shares of a track are known it stays clear, for what is wanted may be
 * there.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {(row: import("../trace/tracks.js").Row) => boolean} isRowWanted
 * @param {(spans: SpanColumns, i: number, id: number) => boolean} isWanted
 */
export function paintVeil(picture, context, isRowWanted, isWanted) {
  const { lines, scrolled, surface, tracks, foot, theme, wide } = picture;
  const { first, last } = lines.between(scrolled, scrolled + surface.height - AXIS);
  context.beginPath();
  context.rect(GUTTER, AXIS, wide, surface.height - AXIS);
  for (const { row, top, high } of lines.lines.slice(first, last)) {
    if (!row || !isRowWanted(row)) continue;
    const filled = (high - 2) * (1 - foot);
    for (let lane = 0; lane < row.lanes; lane++) {
      const box = laneBox(lane, row.lanes);
      const y = AXIS + top - scrolled + 1 + box.top * filled;
      const pieces = tracks.sheets.map((sheet) => sheet.tracks.get(row.track + lane));
      for (const [from, to] of holes(
        picture,
        /** @type {Exact[]} */ (pieces.filter((piece) => piece && "firstId" in piece)),
        isWanted,
      )) {
        context.rect(from, y, to - from, box.height * filled);
      }
    }
  }
  context.fillStyle = theme.veil;
  context.fill("evenodd");
}

/**
 * Returns the stretches of pixels to leave clear on one track, apart and in order.
 * @param {Picture} picture
 * @param {Exact[]} pieces
 * @param {(spans: SpanColumns, i: number, id: number) => boolean} isWanted
 */
function holes({ time, toPixel, surface }, pieces, isWanted) {
  /** @type {[number, number][]} */
  const found = [];
  const inView = pieces.filter((piece) => piece.from < time.end && piece.to > time.start);
  if (!inView.length) return [[GUTTER, surface.width]];
  for (const piece of inView) {
    const { first, last } = piece.between(time.start, time.end);
    for (let i = first; i < last; i++) {
      if (!isWanted(piece.spans, i, piece.firstId + i - piece.first)) continue;
      const from = Math.max(GUTTER, toPixel(piece.spans.start[i]));
      found.push([
        from,
        Math.min(surface.width, Math.max(from + LEAST_WIDE, toPixel(piece.spans.end[i]))),
      ]);
    }
  }
  return merged(found);
}
