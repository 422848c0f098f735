// A trace in view: its spans in tracks, one row of tracks per rank, and how to find a span.

import { Coverage, countUpTo } from "./coverage.js";
import { integers, readPayload } from "./payload.js";

/** @typedef {{number: number, name: string, colour: string, computes: boolean}} ActionTable */
/** @typedef {{track: number, lanes: number, rank: number, stage: number, node: number, pipeline: number}} Row  tracks track .. track + lanes - 1 */
/** @typedef {{step: number, window_ns: number, bubble: number}} StepTable */

const FIRST_LANE = 3;

/** A trace: columns of spans, ordered by track and then by start. */
export class Tracks {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    this.job = header.job;
    /** @type {string} */
    this.name = header.name;
    /** @type {string[]} */
    this.warnings = header.warnings;
    /** @type {{bubble: number | null, ideal: number | null, num_steps: number} | null} */
    this.statistics = header.statistics;
    /** @type {Map<number, ActionTable>} */
    this.actions = new Map(header.actions.map((/** @type {ActionTable} */ each) => [each.number, each]));
    this.kind = integers(columns, "kind");
    this.stage = integers(columns, "stage");
    this.microbatch = integers(columns, "microbatch");
    this.step = integers(columns, "step");
    this.peer = integers(columns, "peer");
    /** What users called spans of theirs, and which name each span has. @type {string[]} */
    this.names = header.names ?? [];
    this.named = columns.get("name") ? integers(columns, "name") : null;
    this.rank = integers(columns, "rank");
    this.start = /** @type {Float64Array} */ (columns.get("start_ns"));
    this.end = /** @type {Float64Array} */ (columns.get("end_ns"));
    this.bounds = integers(columns, "track:bounds");
    this.trackOf = trackOfEach(this.bounds);
    this.rows = rowsOf(columns);
    this.rowOfRank = new Map(this.rows.map(({ rank }, number) => [rank, number]));
    this.severalNodes = new Set(this.rows.map(({ node }) => node)).size > 1;
    this.severalStages = new Set(this.rows.map(({ stage }) => stage)).size > 1;
    this.steps = {
      number: integers(columns, "step:number"),
      start: /** @type {Float64Array} */ (columns.get("step:start_ns")),
      end: /** @type {Float64Array} */ (columns.get("step:end_ns")),
    };
    this.total = this.end.reduce((most, end) => Math.max(most, end), 0);
    const used = new Set(this.kind);
    /** Colours in use; coverage is counted per colour. @type {string[]} */
    this.classes = [...new Set([...this.actions.values()].filter((each) => used.has(each.number)).map((each) => each.colour))];
    this.class = Uint8Array.from(this.kind, (kind) => this.classes.indexOf(this.actions.get(kind)?.colour ?? ""));
    /** @type {(Coverage | undefined)[]} */
    this.coverages = [];
  }

  get length() {
    return this.kind.length;
  }

  /** Writes a span's action as Python does: "3F2", or its own name. @param {number} span */
  actionName(span) {
    const given = this.names[this.named?.[span] ?? -1];
    if (given) return given;
    const part = (/** @type {number} */ value) => (value < 0 ? "" : String(value));
    const name = this.actions.get(this.kind[span])?.name ?? "?";
    return `${part(this.stage[span])}${name}${part(this.microbatch[span])}`;
  }

  /** Returns the running sums of a track, made when it is first drawn. @param {number} track */
  coverage(track) {
    const [first, last] = [this.bounds[track], this.bounds[track + 1]];
    return (this.coverages[track] ??= new Coverage(
      { start: this.start.subarray(first, last), end: this.end.subarray(first, last), class: this.class.subarray(first, last) },
      this.classes.length,
    ));
  }

  /** Returns the spans of a track that meet [from, to], as a first and a last one. @param {number} track @param {number} from @param {number} to */
  between(track, from, to) {
    const [first, last] = [this.bounds[track], this.bounds[track + 1]];
    const begun = first + countUpTo(this.end.subarray(first, last), from);
    const over = first + countUpTo(this.start.subarray(first, last), to);
    return { first: begun, last: over };
  }

  /**
   * Returns the span of a track at `time`, or the nearest one within `slack`; -1 when none is.
   * @param {number} track @param {number} time @param {number} slack
   */
  spanAt(track, time, slack) {
    const { first, last } = this.between(track, time - slack, time + slack);
    let best = -1;
    let least = Infinity;
    for (let span = first; span < last; span++) {
      const away = Math.max(0, this.start[span] - time, time - this.end[span]);
      if (away < least) [best, least] = [span, away];
    }
    return best;
  }

  /** Returns the span that starts before or after one on its rank, itself at the ends. @param {number} span @param {number} by */
  beside(span, by) {
    const { track, lanes } = this.rows[this.rowOf(this.rank[span])];
    const spans = Int32Array.from({ length: this.bounds[track + lanes] - this.bounds[track] }, (_, i) => this.bounds[track] + i);
    spans.sort((one, other) => this.start[one] - this.start[other] || one - other);
    return spans[spans.indexOf(span) + by] ?? span;
  }

  /** Returns the number of the row of a rank, -1 where it recorded nothing. @param {number} rank */
  rowOf(rank) {
    return this.rowOfRank.get(rank) ?? -1;
  }

  /** Returns the spans of a span's microbatch, in its step and on its pipeline's ranks. @param {number} span */
  sameMicrobatch(span) {
    if (span < 0 || this.microbatch[span] < 0) return [];
    const { pipeline } = this.rows[this.rowOf(this.rank[span])];
    const found = [];
    for (const row of this.rows) {
      if (row.pipeline !== pipeline) continue;
      for (let i = this.bounds[row.track]; i < this.bounds[row.track + row.lanes]; i++) {
        if (this.microbatch[i] === this.microbatch[span] && this.step[i] === this.step[span]) found.push(i);
      }
    }
    return found;
  }
}

/**
 * Returns where a lane lies in its row, in shares of the row's height: the first is the widest.
 * @param {number} lane @param {number} lanes
 */
export function laneBox(lane, lanes) {
  const unit = 1 / (lanes + FIRST_LANE - 1);
  return lane === 0 ? { top: 0, height: FIRST_LANE * unit } : { top: (lane + FIRST_LANE - 1) * unit, height: unit };
}

/** @param {Int32Array} bounds */
function trackOfEach(bounds) {
  const tracks = new Int32Array(bounds[bounds.length - 1] ?? 0);
  for (let track = 0; track + 1 < bounds.length; track++) tracks.fill(track, bounds[track], bounds[track + 1]);
  return tracks;
}

/** @param {Map<string, import("./payload.js").Column>} columns */
function rowsOf(columns) {
  const rank = integers(columns, "track:rank");
  const stage = integers(columns, "track:stage");
  const node = integers(columns, "track:node");
  const pipeline = integers(columns, "track:pipeline");
  /** @type {Row[]} */
  const rows = [];
  rank.forEach((each, track) => {
    const last = rows[rows.length - 1];
    if (last && last.rank === each) last.lanes++;
    else rows.push({ track, lanes: 1, rank: each, stage: stage[track], node: node[track], pipeline: pipeline[track] });
  });
  return rows;
}
