// What lies where on the timeline: the row, track and span under a point, and the point of a span.

import { laneBox } from "../trace/tracks.js";
import { AXIS, boxOf } from "./picture.js";

/** @typedef {import("./picture.js").Shown} Shown */
/**
 * @typedef {object} Placed
 * @property {import("../trace/tracks.js").Tracks | null} tracks
 * @property {number} gutter
 * @property {(x: number) => number} timeAt
 * @property {(start: number, end: number) => {from: number, to: number}} extent
 */
/** @typedef {Placed & Pick<Shown, "lines" | "scrolled" | "foot" | "time" | "surface">} View */
/**
 * @typedef {object} Spot  what is under a point
 * @property {number | null} span  -1 where there is none, null where it has not been sent
 * @property {number} rank         -1 beside every row
 * @property {number} track        -1 beside every track
 * @property {number} time
 * @property {number} slack        nanoseconds that count as near
 * @property {number | null} group  whose heading it is, null for none
 */

const SLACK_PIXELS = 3;

/**
 * Returns what is under a point of the canvas.
 * @param {View} view
 * @param {number} x
 * @param {number} y
 * @returns {Spot}
 */
export function spotAt(view, x, y) {
  const { tracks, lines, scrolled, foot, gutter } = view;
  const time = view.timeAt(x);
  /** @type {Spot} */
  const none = {
    span: -1,
    rank: -1,
    track: -1,
    time,
    slack: view.timeAt(x + SLACK_PIXELS) - time,
    group: null,
  };
  const line = tracks && y >= AXIS && x >= 0 ? lines.at(y - AXIS + scrolled) : null;
  if (!tracks || !line) return none;
  if (!line.row) return { ...none, group: line.group };
  const { row } = line;
  if (x < gutter) return { ...none, rank: row.rank };
  const within = (y - AXIS + scrolled - line.top) / line.high / (1 - foot);
  if (within > 1) return none;
  let lane = 0;
  while (lane + 1 < row.lanes && within > laneBox(lane + 1, row.lanes).top) lane++;
  const track = row.track + lane;
  const span = tracks.spanAt(track, time, none.slack);
  return { ...none, span, track, rank: span === -1 ? -1 : row.rank };
}

/**
 * Returns the middle of a span's part in view, in pixels of the page; null when it is not.
 * @param {View} view
 * @param {number} id
 */
export function spotOfSpan(view, id) {
  const { tracks, time, surface } = view;
  const span = tracks?.span(id);
  if (!tracks || !span || span.end < time.start || span.start > time.end || !surface.width)
    return null;
  const box = boxOf({ ...view, tracks }, id);
  if (!box) return null;
  const { left, top } = surface.canvas.getBoundingClientRect();
  const { from, to } = view.extent(span.start, span.end);
  return { x: left + (from + to) / 2, y: top + box.top + box.high / 2 };
}
