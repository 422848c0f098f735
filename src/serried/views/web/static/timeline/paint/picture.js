// What is painted of the timeline: what it shows, and where each thing lies in pixels.

import { Glyphs } from "../../base/canvas/glyphs.js";
import { pixel } from "../../base/theme.js";
import { laneBox } from "../trace/tracks.js";

/** @typedef {import("../trace/tracks.js").Tracks} Tracks */
/** @typedef {import("../trace/tracks.js").Row} Row */
/** @typedef {import("../trace/rows.js").Grouping} Grouping */
/**
 * @typedef {(picture: Picture, context: CanvasRenderingContext2D) => void} Layer
 *   drawn over the tracks, clipped to them
 */
/**
 * @typedef {object} Names
 * @property {(row: Row) => [string, string]} row  its rank, and where that is
 * @property {(grouping: Grouping, group: number) => [string, string, string]} group  its name, its
 *   size, its busy share
 * @property {(step: number) => string} step
 */
/**
 * @typedef {object} Shown
 * @property {Tracks} tracks
 * @property {import("../trace/sheet.js").Colouring} colouring
 * @property {import("../../base/canvas/window.js").TimeWindow} time
 * @property {import("../trace/rows.js").Lines} lines
 * @property {import("../../base/canvas/surface.js").Surface} surface
 * @property {import("../../base/theme.js").Theme} theme
 * @property {import("../../base/canvas/pixels.js").Pixels} pixels
 * @property {number} scrolled   pixels that the lines are moved up
 * @property {number} foot       share of each row that is left free below its tracks
 * @property {import("../../base/lit.js").Lit | null} lit
 * @property {import("../../base/scene.js").Kind[]} kinds
 * @property {number} selected   span, -1 for none
 * @property {number} hovered    span, -1 for none
 * @property {number} pinnedRank
 * @property {import("../trace/answers.js").Links | null} links  of the selected span
 * @property {import("../trace/range.js").Range | null} range
 * @property {Layer[]} layers  over the tracks
 * @property {Layer[]} lights  on the canvas above
 * @property {Names} names
 */
/**
 * @typedef {object} Measures
 * @property {number} wide       of the plot
 * @property {number} left       the gutter in pixels of the screen
 * @property {(time: number) => number} toPixel
 * @property {Glyphs | null} glyphs
 * @property {(colouring: import("../trace/sheet.js").Colouring) => number[]} inks  a pixel for each
 *   class, waits in the colour of the theme
 * @property {(span: number) => {top: number, high: number} | null} boxOf  where a span lies, null
 *   where its rank is folded
 */
/** @typedef {Shown & Measures} Picture */

export const GUTTER = 158;
export const AXIS = 36;
/** Returns the picture of what is shown. @param {Shown} shown @returns {Picture} */
export function pictureOf(shown) {
  const { surface, theme, time, lines } = shown;
  const wide = surface.width - GUTTER;
  const high = Math.min(11.5, (lines.rowHeight - 2) * shown.tracks.firstLane - 1);
  return {
    ...shown,
    wide,
    left: Math.round(GUTTER * surface.density),
    toPixel: (at) => GUTTER + ((at - time.start) / time.span) * wide,
    glyphs: lines.rowHeight < 11 ? null : glyphsFor(theme.font, Math.round(high * surface.density)),
    inks: (colouring) => inksOf(shown.tracks, colouring, theme),
    boxOf: (span) => boxOf(shown, span),
  };
}

/**
 * Returns the pixel of each class of colour; waits have the theme's own.
 * @param {Tracks} tracks
 * @param {import("../trace/sheet.js").Colouring} colouring
 * @param {import("../../base/theme.js").Theme} theme
 */
export function inksOf({ waitColour }, { colours }, theme) {
  return colours.map((each) => pixel(each === waitColour ? theme.wait : each));
}

/**
 * Returns where the lane of a span lies, in pixels of the page; null where its rank is folded.
 * @param {Pick<Shown, "tracks" | "lines" | "scrolled" | "foot">} shown
 * @param {number} span
 */
export function boxOf({ tracks, lines, scrolled, foot }, span) {
  const row = tracks.rowOfSpan(span);
  const line = row && lines.of(row.rank);
  if (!line?.row) return null;
  const box = laneBox(tracks.trackOf(span) - row.track, row.lanes);
  const high = (line.high - 2) * (1 - foot);
  return { top: AXIS + line.top - scrolled + 1 + box.top * high, high: box.height * high };
}

/** @type {Glyphs | null} */
let glyphs = null;

/** @param {string} family @param {number} size */
function glyphsFor(family, size) {
  if (glyphs?.key !== `${size}px ${family}`) glyphs = new Glyphs(family, size);
  return glyphs;
}
