// What is painted of stacked schedules: what is shown, and where each thing lies in pixels.

import { Glyphs } from "../../base/canvas/glyphs.js";
import { mixed } from "../../base/canvas/pixels.js";
import { pixel } from "../../base/theme.js";
import { texturesOf } from "./textures.js";

/** @typedef {import("../model/simulated.js").Simulated} Simulated */
/**
 * @typedef {object} Spot  entry and idle -1 where there is none
 * @property {number} block
 * @property {number} rank
 * @property {number} entry
 * @property {number} idle
 * @property {number} time
 * @property {boolean} isStrip
 */
/**
 * @typedef {object} Shown
 * @property {(Simulated | null)[]} blocks  null for one that was never answered
 * @property {import("../model/stack.js").Stack} stack
 * @property {import("../../base/canvas/window.js").TimeWindow} time
 * @property {import("../../base/canvas/surface.js").Surface} surface
 * @property {import("../../base/theme.js").Theme} theme
 * @property {import("../../base/canvas/pixels.js").Pixels} pixels
 * @property {number} scrolled   pixels that the stack is moved up
 * @property {boolean} showPath
 * @property {Spot | null} hovered
 * @property {Spot | null} chosen
 * @property {number[]} kin      entries of the chosen one's microbatch
 * @property {(data: Simulated, rank: number) => [string, string]} rowName  its rank, and its stages
 * @property {(data: Simulated, rank: number) => string} peakName  the most activations of a rank
 * @property {(data: Simulated, idle: number) => string[]} causeName  a cause in words, the longest
 *   first
 */
/**
 * @typedef {object} Measures
 * @property {number} gutter
 * @property {number} left   the gutter in pixels of the screen
 * @property {number} scale  what a full strip stands for
 * @property {(time: number) => number} toPixel
 * @property {Glyphs} glyphs
 * @property {import("../../base/canvas/pixels.js").ColumnColours} colours
 * @property {Map<string, CanvasPattern | null>} textures
 */
/** @typedef {Shown & Measures} Picture */

export const GUTTER = 104;

/** Returns the picture of what is shown. @param {Shown} shown @returns {Picture} */
export function pictureOf(shown) {
  const { surface, theme, time, stack, blocks } = shown;
  const wide = surface.width - GUTTER;
  return {
    ...shown,
    gutter: GUTTER,
    left: Math.round(GUTTER * surface.density),
    scale: stripScale(blocks),
    toPixel: (at) => GUTTER + ((at - time.start) / time.span) * wide,
    glyphs: glyphsFor(theme.font, Math.round(Math.min(11.5, stack.bar - 3) * surface.density)),
    colours: stripColours(theme),
    textures: texturesOf(surface.context, theme),
  };
}

/**
 * Returns what a full strip stands for, in activations of a whole rank: one scale for all blocks.
 * @param {(Simulated | null)[]} blocks
 */
function stripScale(blocks) {
  const highest = blocks.map((data) =>
    data ? Math.max(data.header.peak.to_weight, data.header.limit ?? 0) / data.header.parts : 0,
  );
  return Math.max(1e-9, ...highest) * 1.06;
}

/** The masks in use; made anew for another size. @type {Glyphs | null} */
let glyphs = null;

/** @param {string} family @param {number} size */
function glyphsFor(family, size) {
  if (glyphs?.key !== `${size}px ${family}`) glyphs = new Glyphs(family, size);
  return glyphs;
}

/** @param {import("../../base/theme.js").Theme} theme */
function stripColours(theme) {
  const [ground, ink] = [pixel(theme.box), pixel(theme.faint)];
  return {
    fill: mixed(ground, ink, 0.22),
    edge: mixed(ground, ink, 0.8),
    over: pixel(theme.alarm),
    line: Infinity,
  };
}
