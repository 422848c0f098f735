// The plan of a trace: one step of one pipeline, which every step and every pipeline repeats.
//
//   planned step   |-0F0-|-0F1-|      |---0B0---|      rows of place 0, from 0
//   on the clock   + where the step began               of any rank whose place is 0

import { Coverage, countUpTo } from "../../base/coverage.js";
import { integers, readPayload } from "../../base/payload.js";

/**
 * @typedef {object} Bar  a planned span on the clock of the trace
 * @property {number} kind
 * @property {number} stage
 * @property {number} microbatch
 * @property {number} step
 * @property {number} start
 * @property {number} end
 */

/** Holds what was planned, and when. */
export class Plan {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    /** @type {string} */
    this.schedule = header.schedule;
    this.kind = integers(columns, "planned:kind");
    this.stage = integers(columns, "planned:stage");
    this.microbatch = integers(columns, "planned:microbatch");
    this.start = /** @type {Float64Array} */ (columns.get("planned:start_ns"));
    this.end = /** @type {Float64Array} */ (columns.get("planned:end_ns"));
    this.place = integers(columns, "place");
    this.steps = integers(columns, "step:number");
    this.begins = /** @type {Float64Array} */ (columns.get("step:start_ns"));
    const places = integers(columns, "planned:place");
    /** The rows of each place: bounds[place] .. bounds[place + 1]. */
    this.bounds = Array.from({ length: (places[places.length - 1] ?? -1) + 2 }, (_, place) =>
      countUpTo(places, place - 1),
    );
    /** How long a planned step is. */
    this.length = this.end.reduce((most, end) => Math.max(most, end), 0);
    this.known = new Map(
      Array.from(places, (place, row) => [
        this._name(place, this.kind[row], this.stage[row], this.microbatch[row]),
        row,
      ]),
    );
    /** @type {Map<number, Coverage>} */
    this.sums = new Map();
  }

  /**
   * Returns when a recorded span was to start and end; null where the plan has none such.
   * @param {number} rank
   * @param {{kind: number, stage: number, microbatch: number, step: number}} span
   */
  of(rank, { kind, stage, microbatch, step }) {
    const row = this.known.get(this._name(this.place[rank], kind, stage, microbatch));
    const at = this.steps.indexOf(step);
    if (row === undefined || at < 0) return null;
    return { start: this.begins[at] + this.start[row], end: this.begins[at] + this.end[row] };
  }

  /**
   * Returns the steps whose plan meets [from, to], as places in `steps`.
   * @param {number} from
   * @param {number} to
   */
  stepsBetween(from, to) {
    return Array.from(this.steps.keys()).filter(
      (at) => this.begins[at] < to && this.begins[at] + this.length > from,
    );
  }

  /**
   * Returns the planned spans of a rank that meet [from, to], by start.
   * @param {number} rank
   * @param {number} from
   * @param {number} to
   * @returns {Bar[]}
   */
  between(rank, from, to) {
    const [first, last] = this._rows(rank);
    return this.stepsBetween(from, to).flatMap((at) => {
      const begin = this.begins[at];
      const begun = first + countUpTo(this.end.subarray(first, last), from - begin);
      const over = first + countUpTo(this.start.subarray(first, last), to - begin);
      return Array.from({ length: Math.max(0, over - begun) }, (_, i) => this._bar(begun + i, at));
    });
  }

  /**
   * Returns about how many planned spans of a rank meet [from, to], without making them.
   * @param {number} rank
   * @param {number} from
   * @param {number} to
   */
  count(rank, from, to) {
    const [first, last] = this._rows(rank);
    return this.stepsBetween(from, to).reduce((sum, at) => {
      const begin = this.begins[at];
      return (
        sum +
        countUpTo(this.start.subarray(first, last), to - begin) -
        countUpTo(this.end.subarray(first, last), from - begin)
      );
    }, 0);
  }

  /**
   * Returns the share of each of `width` pixels of [from, to] that each class of spans fills.
   * @param {number} rank
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {(kind: number) => number} classOf
   * @param {number} numClasses
   */
  shares(rank, from, to, width, classOf, numClasses) {
    const shares = new Float64Array(width * numClasses);
    const coverage = this._coverage(this.place[rank], classOf, numClasses);
    const perPixel = (to - from) / width;
    for (const at of this.stepsBetween(from, to)) {
      const begin = this.begins[at];
      const first = Math.max(0, Math.floor((begin - from) / perPixel));
      const last = Math.min(width, Math.ceil((begin + this.length - from) / perPixel));
      if (last <= first) continue;
      const part = coverage.shares(
        from + first * perPixel - begin,
        from + last * perPixel - begin,
        last - first,
      );
      for (let i = 0; i < part.length; i++) shares[first * numClasses + i] += part[i];
    }
    return shares;
  }

  /** @param {number} place @param {(kind: number) => number} classOf @param {number} numClasses */
  _coverage(place, classOf, numClasses) {
    const known = this.sums.get(place);
    if (known) return known;
    const [first, last] = [this.bounds[place], this.bounds[place + 1]];
    const classes = Uint8Array.from(this.kind.subarray(first, last), classOf);
    const made = new Coverage(
      {
        start: this.start.subarray(first, last),
        end: this.end.subarray(first, last),
        class: classes,
      },
      numClasses,
    );
    this.sums.set(place, made);
    return made;
  }

  /** @param {number} rank */
  _rows(rank) {
    const place = this.place[rank];
    return [this.bounds[place], this.bounds[place + 1]];
  }

  /** @param {number} row @param {number} at place of the step @returns {Bar} */
  _bar(row, at) {
    const begin = this.begins[at];
    return {
      kind: this.kind[row],
      stage: this.stage[row],
      microbatch: this.microbatch[row],
      step: this.steps[at],
      start: begin + this.start[row],
      end: begin + this.end[row],
    };
  }

  /** @param {...number} parts */
  _name(...parts) {
    return parts.join();
  }
}
