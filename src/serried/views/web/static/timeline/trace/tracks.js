// A trace in view: its tracks, one row of them per rank, and the sheets that hold its spans.

import { countUpTo } from "../../base/coverage.js";
import { integers, readPayload } from "../../base/payload.js";
import { SpanColumns, wholeSheet } from "./sheet.js";

/** @typedef {{number: number, name: string, colour: string, computes: boolean}} ActionTable */
/**
 * @typedef {object} RankPeriod  of one rank, in microseconds of a mean step
 * @property {number} rank
 * @property {string} host
 * @property {number} period_us
 * @property {number} data_us
 * @property {number} compute_us
 * @property {number} communication_us
 * @property {number} optimizer_us
 * @property {number} before_us
 * @property {number} gaps_us
 * @property {number} waited_for_us
 */
/**
 * @typedef {object} Periods  what Python measured (serried.trace-period/1)
 * @property {{mean: Omit<RankPeriod, "rank" | "host" | "waited_for_us">, ranks: RankPeriod[],
 *   has_data: boolean} | null} periods
 */
/**
 * @typedef {object} Row  tracks track .. track + lanes - 1
 * @property {number} track
 * @property {number} lanes
 * @property {number} rank
 * @property {number} stage
 * @property {number} node
 * @property {number} pipeline
 */
/**
 * @typedef {object} Bubble  of num_steps complete steps
 * @property {number | null} bubble
 * @property {number | null} ideal
 * @property {number} num_steps
 * @property {number} all_steps
 * @property {boolean} pipeline
 */
/** @typedef {import("./sheet.js").Slice} Slice */
/** @typedef {import("./sheet.js").Sheet} Sheet */

const FIRST_LANE = 3;
/** Sheets kept beside the first one, which is the whole trace or its overview. */
const SHEETS_KEPT = 10;
const SLICES_KEPT = 4000;

/** Holds a trace; its spans are numbered by track and then by start, sent or not. */
export class Tracks {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    this.job = header.job;
    /** Whether nothing ran: it is a planned step. */
    this.isPlanned = this.job.compute === "planned";
    /** @type {string} */
    this.name = header.name;
    /** In every language. @type {Record<string, string[]>} */
    this.warnings = header.warnings;
    /** That files have no proper end, in every language. @type {Record<string, string[]>} */
    this.torn = header.torn;
    /** That of a large trace is asked for on its own. @type {Bubble | null} */
    this.statistics = header.statistics;
    /** Of a job without a pipeline. @type {Periods | null} */
    this.periods = null;
    /** @type {Map<number, ActionTable>} */
    this.actions = new Map(
      header.actions.map((/** @type {ActionTable} */ each) => [each.number, each]),
    );
    /** What users called spans of theirs. @type {string[]} */
    this.names = header.names;
    /** Whether it is a profile of GPUs. @type {boolean} */
    this.hasGpus = Boolean(header.has_gpus);
    /** @type {{collective: string, count: number, ranks: string}[]} */
    this.groups = header.groups ?? [];
    /** Kinds that wait for a message. */
    this.waits = new Set(
      [...this.actions.values()]
        .filter(({ name }) => name.startsWith("RECV"))
        .map(({ number }) => number),
    );
    /** The colour that the server gives them; the page has one of its own for each theme. */
    this.waitColour = [...this.actions.values()].find(({ number }) =>
      this.waits.has(number),
    )?.colour;
    /** Group kinds that rows may stand under. @type {string[]} */
    this.groupings = header.groupings;
    /** What is measured of each span. @type {string[]} */
    this.measured = header.scales;
    /**
     * From what values on the classes of that count, once asked for.
     * @type {Record<string, number[]>}
     */
    this.scales = {};
    /** @type {boolean} */
    this.isWhole = header.whole;
    /** @type {number} */
    this.total = header.total_ns;
    this.bounds = integers(columns, "track:bounds");
    this.length = this.bounds[this.bounds.length - 1] ?? 0;
    this.rows = rowsOf(columns);
    /** The share of a row that its first lane has where it is lowest. */
    this.firstLane = laneBox(
      0,
      this.rows.reduce((most, { lanes }) => Math.max(most, lanes), 1),
    ).height;
    this.rowOfRank = new Map(this.rows.map((row, number) => [row.rank, number]));
    this.severalNodes = new Set(this.rows.map(({ node }) => node)).size > 1;
    this.severalStages = new Set(this.rows.map(({ stage }) => stage)).size > 1;
    this.steps = {
      number: integers(columns, "step:number"),
      start: /** @type {Float64Array} */ (columns.get("step:start_ns")),
      end: /** @type {Float64Array} */ (columns.get("step:end_ns")),
    };
    /** The place among them of one of median length, -1 where there are few. @type {number} */
    this.middle = header.middle ?? -1;
    /** Numbers of the kinds of action in the trace. @type {number[]} */
    this.used = header.used;
    /**
     * Colours in use when colours stand for actions, as the server counts them.
     * @type {string[]}
     */
    this.classes = header.classes;
    /** Newest first; the last one covers all. @type {Sheet[]} */
    this.sheets = this.isWhole ? [wholeSheet(columns, this.bounds)] : [];
    /** Spans that were asked for one by one. @type {Map<number, Slice>} */
    this.kept = new Map();
    /** Numbers of spans by the names that addresses have for them. @type {Map<string, number>} */
    this.numbers = new Map();
  }

  /** Takes a sheet in; the oldest beside the one that covers all goes. @param {Sheet} sheet */
  add(sheet) {
    this.sheets.unshift(sheet);
    if (this.sheets.length > SHEETS_KEPT + 1) this.sheets.splice(SHEETS_KEPT, 1);
  }

  /** Takes a sheet that covers all in place of the one before. @param {Sheet} sheet */
  lay(sheet) {
    this.sheets.splice(Math.max(0, this.sheets.length - 1), 1, sheet);
  }

  /**
   * Keeps spans of an answer that names them one by one.
   * @param {Map<string, import("../../base/payload.js").Column>} columns
   */
  keep(columns) {
    const spans = new SpanColumns(columns);
    if (this.kept.size > SLICES_KEPT) this.kept.clear();
    integers(columns, "id").forEach((id, i) => this.kept.set(id, spans.slice(i, id)));
  }

  /** Returns a span, null while it has not been sent. @param {number} id @returns {Slice | null} */
  span(id) {
    if (id < 0 || id >= this.length) return null;
    const kept = this.kept.get(id);
    if (kept) return kept;
    const track = this.trackOf(id);
    for (const { tracks } of this.sheets) {
      const piece = tracks.get(track);
      if (!piece || !("firstId" in piece)) continue;
      const place = piece.first + id - piece.firstId;
      if (place >= piece.first && place < piece.last) return piece.spans.slice(place, id);
    }
    return null;
  }

  /** Returns the track of a span. @param {number} id */
  trackOf(id) {
    return countUpTo(this.bounds, id) - 1;
  }

  /** Returns the row of a span. @param {number} id */
  rowOfSpan(id) {
    const track = this.trackOf(id);
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle].track <= track) low = middle;
      else high = middle - 1;
    }
    return this.rows[low];
  }

  /** Returns the rank of a span, whether it has been sent or not. @param {number} id */
  rankOf(id) {
    return this.rowOfSpan(id)?.rank ?? -1;
  }

  /**
   * Writes a span's action as Python does: "3F2", or its own name.
   * @param {{kind: number, stage: number, microbatch: number, named: number}} span
   */
  actionName({ kind, stage, microbatch, named }) {
    const given = this.names[named];
    if (given) return given;
    const part = (/** @type {number} */ value) => (value < 0 ? "" : String(value));
    return `${part(stage)}${this.actions.get(kind)?.name ?? "?"}${part(microbatch)}`;
  }

  /**
   * Returns the span of a track at `time`, or the nearest one within `slack`; -1 when none is, and
   * null while no spans of that time have been sent.
   * @param {number} track
   * @param {number} time
   * @param {number} slack
   * @returns {number | null}
   */
  spanAt(track, time, slack) {
    for (const sheet of this.sheets) {
      const piece = sheet.tracks.get(track);
      if (piece && "firstId" in piece && piece.from <= time - slack && time + slack <= piece.to)
        return piece.at(time, slack);
    }
    return null;
  }

  /**
   * Returns what an address calls a span: RANK.START, and .PLACE of several that begin alike on
   * tracks of the rank. Its number would be another's once the run has grown.
   * @param {number} id
   */
  nameOf(id) {
    const span = this.span(id);
    if (!span) return String(id);
    const rank = this.rankOf(id);
    const place = this._alike(rank, span.start).indexOf(id);
    const name = `${rank}.${span.start}${place > 0 ? `.${place}` : ""}`;
    this.numbers.set(name, id);
    return name;
  }

  /**
   * Returns the number of the span that an address names, or that it tells as older ones do; -1
   * where there is none, or it was not sent.
   * @param {string} name
   */
  idOf(name) {
    if (/^\d+$/.test(name)) return Number(name) < this.length ? Number(name) : -1;
    const known = this.numbers.get(name);
    if (known !== undefined) return known;
    const [rank, start, place = 0] = name.split(".").map(Number);
    return this._alike(rank, start)[place] ?? -1;
  }

  /** Returns the spans of a rank that begin at a moment. @param {number} rank @param {number} at */
  _alike(rank, at) {
    const row = this.rows[this.rowOf(rank)];
    /** @type {number[]} */
    const found = [];
    for (let lane = 0; row && lane < row.lanes; lane++) {
      const pieces = this.sheets.map(({ tracks }) => tracks.get(row.track + lane));
      const piece = pieces.find(
        (each) => each && "firstId" in each && each.from <= at && at <= each.to,
      );
      if (!piece || !("firstId" in piece)) continue;
      let place = countUpTo(piece.start, at - 1);
      while (piece.start[place] === at) found.push(piece.firstId + place++);
    }
    return found;
  }

  /** Returns the number of the row of a rank, -1 where it recorded nothing. @param {number} rank */
  rowOf(rank) {
    return this.rowOfRank.get(rank) ?? -1;
  }
}

/**
 * Returns where a lane lies in its row, in shares of the row's height: the first is the widest.
 * @param {number} lane
 * @param {number} lanes
 */
export function laneBox(lane, lanes) {
  const unit = 1 / (lanes + FIRST_LANE - 1);
  return lane === 0
    ? { top: 0, height: FIRST_LANE * unit }
    : { top: (lane + FIRST_LANE - 1) * unit, height: unit };
}

/** @param {Map<string, import("../../base/payload.js").Column>} columns */
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
    else
      rows.push({
        track,
        lanes: 1,
        rank: each,
        stage: stage[track],
        node: node[track],
        pipeline: pipeline[track],
      });
  });
  return rows;
}
