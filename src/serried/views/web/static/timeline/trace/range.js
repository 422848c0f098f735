// A range of the timeline: a stretch of time over some ranks, drawn with Shift held.

import { readRuns, runsText } from "./runs.js";

/**
 * @typedef {object} Range  times are nanoseconds of the trace
 * @property {number} start
 * @property {number} end
 * @property {number[]} ranks  ascending
 */

/** Writes a range as the address bar holds it: "12000,48000,0-7". @param {Range | null} range */
export function rangeText(range) {
  return range
    ? `${Math.round(range.start)},${Math.round(range.end)},${runsText(range.ranks)}`
    : "";
}

/**
 * Reads a range; null for what is none.
 * @param {string} text
 * @param {number} worldSize
 * @returns {Range | null}
 */
export function readRange(text, worldSize) {
  const [start, end, ...runs] = text.split(",");
  const ranks = readRuns(runs.join(","), worldSize);
  if (!(text && Number(end) > Number(start) && ranks.length)) return null;
  return { start: Number(start), end: Number(end), ranks };
}
