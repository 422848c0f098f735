// One simulated schedule in view: its actions rank by rank, its idle time, its critical path.
//
// An overlapped pair is two entries of one time; it is drawn as halves of that time, side by side.

import { Coverage, countUpTo } from "../../base/coverage.js";
import { readPayload } from "../../base/payload.js";
import { Level } from "./level.js";

/** @typedef {Uint8Array | Uint16Array | Int32Array} Whole */
/**
 * @typedef {object} Refused
 * @property {string} package
 * @property {string} version
 * @property {Record<string, {evidence: string[], cure: string | null}>} in
 */
/** @typedef {{quantity: string, formula: string, value: number, region: string}} ClosedForm */
/** @typedef {{number: number, name: string, colour: string}} KindTable */
/**
 * @typedef {object} ScheduleHeader
 * @property {string} name
 * @property {number} num_ranks
 * @property {number} num_microbatches
 * @property {number} num_stages
 * @property {number} num_directions
 * @property {number} stages_per_rank
 * @property {number | null} group
 * @property {number} num_actions
 * @property {number[][]} stages_of  the stages of each rank
 * @property {number} parts          into how many parts its stages cut what a rank has of the model
 * @property {string} options        of the command line that gives the same answer
 * @property {number} ticks_per_unit
 * @property {number} latency
 * @property {number} makespan
 * @property {[number, number]} work least and most of a rank
 * @property {{makespan: number, over_ideal: number, window: number}} bubble
 * @property {{to_weight: number, to_input: number}} peak
 * @property {number | null} limit
 * @property {number | null} latency_adds
 * @property {{total: number, causes: Record<string, number>}} idle
 * @property {ClosedForm[]} closed_forms
 * @property {Refused[]} [findings]  packages that refuse these sizes; of a plan only
 * @property {string[]} [causes]     of idle time, where they are not a plan's
 * @property {number} [step]         of a run; this and what follows only of a measured one
 * @property {[number, number]} [steps]  the first and the last of the run
 * @property {number[]} [ranks]      the rank at each place of the pipeline
 * @property {string} [compute]      real or emulated
 * @property {string} [schedule]     what the run was to run
 * @property {Record<string, string>} [times]  fields of a plan of the run
 */

/** Holds a schedule: columns of entries, rank by rank, each in the order in which it runs. */
export class Simulated {
  /**
   * @param {ArrayBuffer} buffer
   * @param {KindTable[]} kinds
   * @param {string[]} causes in the order of their numbers
   */
  constructor(buffer, kinds, causes) {
    const { header, columns } = readPayload(buffer);
    /** @type {ScheduleHeader} */
    this.header = header;
    this.causes = this.header.causes ?? causes;
    const whole = (/** @type {string} */ name) => /** @type {Whole} */ (columns.get(name));
    const units = (/** @type {string} */ name) => inUnits(columns.get(name), header.ticks_per_unit);
    this.bounds = whole("bounds");
    this.stage = whole("stage");
    this.microbatch = whole("microbatch");
    this.kind = whole("kind");
    this.joined = whole("joined");
    this.critical = whole("critical");
    this.source = whole("source");
    /** @type {Whole | null} */
    this.direction = whole("direction") ?? null;
    this.held = { to_weight: whole("held:to_weight"), to_input: whole("held:to_input") };
    this.hasPairs = this.joined.includes(1);
    /** When entries run, in units. */
    this.times = { start: units("start"), end: units("end") };
    /** Where they are drawn: the same, but for the halves of pairs. */
    this.drawn = this.hasPairs ? halved(this.times, this.joined) : this.times;
    this.idle = {
      bounds: whole("idle:bounds"),
      start: units("idle:start"),
      end: units("idle:end"),
      cause: whole("idle:cause"),
      source: whole("idle:source"),
    };
    this.path = {
      rank: whole("path:rank"),
      message: whole("path:message"),
      entry: whole("path:entry"),
      start: /** @type {Float64Array} */ (columns.get("path:start")),
      end: /** @type {Float64Array} */ (columns.get("path:end")),
    };
    const used = new Set(this.kind);
    /** Kinds in use; coverage is counted for each. */
    this.kinds = kinds.filter(({ number }) => used.has(number));
    const place = new Map(this.kinds.map(({ number }, i) => [number, i]));
    this.class = Uint8Array.from(this.kind, (kind) => place.get(kind) ?? 0);
    /** The place of each stage among those of its rank, by rank. */
    this.chunkOf = this.header.stages_of.map(
      (stages) => new Map(stages.map((stage, i) => [stage, i])),
    );
    /** @type {(Coverage | undefined)[]} */
    this.coverages = [];
    /** @type {(Level | undefined)[]} */
    this.levels = [];
  }

  get numRanks() {
    return this.header.num_ranks;
  }

  get length() {
    return this.kind.length;
  }

  /** Whether its times were recorded and not planned. */
  get isMeasured() {
    return this.header.step !== undefined;
  }

  /**
   * Returns the number that a rank goes by; the rows of a measured one are ranks of the job.
   * @param {number} row
   */
  rankName(row) {
    return this.header.ranks?.[row] ?? row;
  }

  /** Returns the rank of an entry. @param {number} entry */
  rankOf(entry) {
    return countUpTo(this.bounds, entry) - 1;
  }

  /** Writes an entry's action as Python does: "3F2". @param {number} entry */
  actionName(entry) {
    const way = this.direction ? `${this.direction[entry]}:` : "";
    const { name } = this.kinds[this.class[entry]];
    return `${way}${this.stage[entry]}${name}${this.microbatch[entry]}`;
  }

  /** Returns the entry of an action, -1 where there is none. @param {string} name */
  entryOf(name) {
    const match = /^(?:([01]):)?(\d+)([FBIW])(\d+)$/.exec(name);
    if (!match) return -1;
    const [, way, stage, letter, microbatch] = match;
    const kind = this.kinds.findIndex((each) => each.name === letter);
    for (let entry = 0; entry < this.length; entry++) {
      if (this.microbatch[entry] !== Number(microbatch) || this.stage[entry] !== Number(stage))
        continue;
      if (
        this.class[entry] === kind &&
        (!this.direction || this.direction[entry] === Number(way ?? 0))
      )
        return entry;
    }
    return -1;
  }

  /**
   * Returns the place of an entry's stage among those of its rank.
   * @param {number} rank
   * @param {number} entry
   */
  chunk(rank, entry) {
    if (this.direction) return this.direction[entry];
    return this.chunkOf[rank].get(this.stage[entry]) ?? 0;
  }

  /**
   * Returns the other half of an overlapped pair, -1 for an action on its own.
   * @param {number} entry
   */
  partner(entry) {
    if (this.joined[entry]) return entry + 1;
    return entry > 0 && this.joined[entry - 1] ? entry - 1 : -1;
  }

  /** Returns the running sums of a rank, made when it is first drawn. @param {number} rank */
  coverage(rank) {
    const [first, last] = [this.bounds[rank], this.bounds[rank + 1]];
    return (this.coverages[rank] ??= new Coverage(
      {
        start: this.drawn.start.subarray(first, last),
        end: this.drawn.end.subarray(first, last),
        class: this.class.subarray(first, last),
      },
      this.kinds.length,
    ));
  }

  /** Returns the activations of a rank over time, counted to W. @param {number} rank */
  level(rank) {
    const [first, last] = [this.bounds[rank], this.bounds[rank + 1]];
    return (this.levels[rank] ??= new Level(
      this.times.start.subarray(first, last),
      this.times.end.subarray(first, last),
      this.held.to_weight.subarray(first, last),
    ));
  }

  /**
   * Returns the entries of a rank that meet [from, to], as a first and a last one.
   * @param {number} rank
   * @param {number} from
   * @param {number} to
   */
  between(rank, from, to) {
    const [first, last] = [this.bounds[rank], this.bounds[rank + 1]];
    return {
      first: first + countUpTo(this.drawn.end.subarray(first, last), from),
      last: first + countUpTo(this.drawn.start.subarray(first, last), to),
    };
  }

  /**
   * Returns the entry that runs on a rank at `time`, -1 where it is idle.
   * @param {number} rank
   * @param {number} time
   */
  entryAt(rank, time) {
    const [first, last] = [this.bounds[rank], this.bounds[rank + 1]];
    const entry = first + countUpTo(this.drawn.start.subarray(first, last), time) - 1;
    return entry >= first && time < this.drawn.end[entry] ? entry : -1;
  }

  /**
   * Returns the idle interval of a rank at `time`, -1 where it works.
   * @param {number} rank
   * @param {number} time
   */
  idleAt(rank, time) {
    const { bounds, start, end } = this.idle;
    const [first, last] = [bounds[rank], bounds[rank + 1]];
    const found = first + countUpTo(start.subarray(first, last), time) - 1;
    return found >= first && time < end[found] ? found : -1;
  }

  /**
   * Returns the idle intervals that end where an entry starts, the latest first.
   * @param {number} entry
   */
  idleBefore(entry) {
    const { bounds, start, end } = this.idle;
    const rank = this.rankOf(entry);
    const begin = this.times.start[entry];
    const found = [];
    let until = begin;
    for (
      let i = bounds[rank] + countUpTo(start.subarray(bounds[rank], bounds[rank + 1]), begin) - 1;
      i >= bounds[rank];
      i--
    ) {
      if (end[i] < until - 1e-9 * this.header.makespan) break;
      if (end[i] <= begin) found.push(i);
      until = start[i];
    }
    return found;
  }

  /**
   * Returns the entry on a rank nearest in time to `time`.
   * @param {number} rank
   * @param {number} time
   */
  nearest(rank, time) {
    const [first, last] = [this.bounds[rank], this.bounds[rank + 1]];
    const entry = first + countUpTo(this.drawn.start.subarray(first, last), time) - 1;
    return Math.min(last - 1, Math.max(first, entry));
  }

  /** Returns the entries of an entry's microbatch, on all ranks. @param {number} entry */
  sameMicrobatch(entry) {
    const found = [];
    for (let i = 0; i < this.length; i++) {
      if (
        this.microbatch[i] === this.microbatch[entry] &&
        (!this.direction || this.direction[i] === this.direction[entry])
      )
        found.push(i);
    }
    return found;
  }
}

/** @param {import("../../base/payload.js").Column | undefined} ticks @param {number} perUnit */
function inUnits(ticks, perUnit) {
  if (ticks instanceof Float64Array) return ticks;
  const units = new Float64Array(ticks?.length ?? 0);
  for (let i = 0; i < units.length; i++) units[i] = /** @type {Int32Array} */ (ticks)[i] / perUnit;
  return units;
}

/**
 * Returns times in which both halves of each pair stand side by side.
 * @param {{start: Float64Array, end: Float64Array}} times
 * @param {Whole} joined
 */
function halved(times, joined) {
  const [start, end] = [times.start.slice(), times.end.slice()];
  for (let i = 0; i < joined.length; i++) {
    if (!joined[i]) continue;
    end[i] = (times.start[i] + times.end[i]) / 2;
    start[i + 1] = end[i];
  }
  return { start, end };
}
