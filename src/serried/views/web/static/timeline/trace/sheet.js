// A sheet: a stretch of a trace as the server sent it, some tracks span by span, others as shares.
//
//   track 0   exact    |--F--|   |--B--|        columns of spans, in order
//   track 1   shares   ▇▇▅▁▁▃▇▇▇▇               a byte per bucket of time and class of colour

import { Coverage, countUpTo } from "../../base/coverage.js";
import { integers } from "../../base/payload.js";

/** @typedef {Map<string, import("../../base/payload.js").Column>} Columns */
/**
 * @typedef {object} Colouring
 * @property {string} name                       as the address bar and the server write it; "" is
 *   by action
 * @property {string[]} colours                  of each class
 * @property {(spans: SpanColumns, i: number) => number} classOf
 * @property {"actions" | "turns" | "scale"} legend
 * @property {number[]} [edges]                  of a scale: values from which the next class counts
 */
/**
 * @typedef {object} Slice  a span as the page speaks of it
 * @property {number} id     its place in the trace: by track, then by start
 * @property {number} kind
 * @property {number} stage
 * @property {number} microbatch
 * @property {number} step
 * @property {number} peer
 * @property {number} named  place of its own name, -1 where it has none
 * @property {number} bytes  what its collectives moved, -1 where that is not told
 * @property {number} group  place of their group, -1 for none and for several
 * @property {number} start
 * @property {number} end
 */

/** Holds spans as columns; those of one track follow one another. */
export class SpanColumns {
  /** @param {Columns} columns */
  constructor(columns) {
    this.kind = integers(columns, "kind");
    this.stage = integers(columns, "stage");
    this.microbatch = integers(columns, "microbatch");
    this.step = integers(columns, "step");
    this.peer = integers(columns, "peer");
    this.named = integers(columns, "name");
    this.start = /** @type {Float64Array} */ (columns.get("start_ns"));
    this.end = /** @type {Float64Array} */ (columns.get("end_ns"));
    const moved = /** @type {Float64Array | undefined} */ (columns.get("size_bytes"));
    this.bytes = moved ?? null;
    this.group = moved ? integers(columns, "group") : null;
    /** A number per span by the name of what it measures. @type {Map<string, Float64Array>} */
    this.values = new Map();
    for (const [name, column] of columns) {
      if (name.startsWith("value:"))
        this.values.set(name.slice(6), /** @type {Float64Array} */ (column));
    }
    /**
     * The class of each span, made when a colouring is first drawn.
     * @type {{colouring: Colouring | null, classes: Uint8Array}}
     */
    this.painted = { colouring: null, classes: new Uint8Array(0) };
  }

  /** Returns the class of colour of each span. @param {Colouring} colouring */
  classes(colouring) {
    if (this.painted.colouring !== colouring) {
      const classes = Uint8Array.from(this.kind, (_, i) => colouring.classOf(this, i));
      this.painted = { colouring, classes };
    }
    return this.painted.classes;
  }

  /** Returns a span. @param {number} i place in the columns @param {number} id @returns {Slice} */
  slice(i, id) {
    const { kind, stage, microbatch, step, peer, named, start, end, bytes, group } = this;
    return {
      id,
      kind: kind[i],
      stage: stage[i],
      microbatch: microbatch[i],
      step: step[i],
      peer: peer[i],
      named: named[i],
      bytes: bytes ? bytes[i] : -1,
      group: group ? group[i] : -1,
      start: start[i],
      end: end[i],
    };
  }
}

/** Holds the spans of one track in a stretch, every one of them. */
export class Exact {
  /**
   * @param {SpanColumns} spans
   * @param {number} first
   * @param {number} last places in the columns
   * @param {number} firstId
   * @param {number} from
   * @param {number} to
   */
  constructor(spans, first, last, firstId, from, to) {
    this.from = from;
    this.to = to;
    this.bucket = 0;
    this.spans = spans;
    this.first = first;
    this.last = last;
    this.firstId = firstId;
    this.start = spans.start.subarray(first, last);
    this.end = spans.end.subarray(first, last);
    /** @type {{colouring: Colouring | null, coverage: Coverage | null}} */
    this.summed = { colouring: null, coverage: null };
  }

  /**
   * Returns the spans that meet [from, to], as a first and a last place.
   * @param {number} from
   * @param {number} to
   */
  between(from, to) {
    return {
      first: this.first + countUpTo(this.end, from),
      last: this.first + countUpTo(this.start, to),
    };
  }

  /**
   * Returns the running sums, made when they are first drawn.
   * @param {Colouring} colouring
   * @returns {Coverage}
   */
  coverage(colouring) {
    if (this.summed.colouring !== colouring || !this.summed.coverage) {
      const classes = this.spans.classes(colouring).subarray(this.first, this.last);
      const coverage = new Coverage(
        { start: this.start, end: this.end, class: classes },
        colouring.colours.length,
      );
      this.summed = { colouring, coverage };
    }
    return /** @type {Coverage} */ (this.summed.coverage);
  }

  /**
   * Returns the id of the span at `time`, or the nearest one within `slack`; -1 when none is.
   * @param {number} time
   * @param {number} slack
   */
  at(time, slack) {
    const { first, last } = this.between(time - slack, time + slack);
    let best = -1;
    let least = Infinity;
    for (let i = first; i < last; i++) {
      const away = Math.max(0, this.spans.start[i] - time, time - this.spans.end[i]);
      if (away < least) [best, least] = [this.firstId + i - this.first, away];
    }
    return best;
  }
}

/** Holds the shares of one track, or of a group of ranks, in buckets of equal length. */
export class Shares {
  /**
   * @param {Uint8Array} bytes bucket by bucket, a byte per class, 255 for all of it
   * @param {number} bucket nanoseconds
   * @param {number} from
   * @param {Colouring} colouring the one it was counted for
   */
  constructor(bytes, bucket, from, colouring) {
    this.bytes = bytes;
    this.bucket = bucket;
    this.colouring = colouring;
    this.numClasses = colouring.colours.length;
    this.count = bytes.length / this.numClasses;
    this.from = from;
    this.to = from + this.count * bucket;
    /** @type {Uint32Array | null} */
    this.sums = null;
  }

  /**
   * Returns the shares of `width` equal pixels of [start, end], as Coverage does.
   * @param {number} start
   * @param {number} end
   * @param {number} width
   */
  shares(start, end, width) {
    const { numClasses, bytes, count } = this;
    const sums = (this.sums ??= summed(bytes, numClasses));
    const shares = new Float32Array(width * numClasses);
    const perPixel = (end - start) / this.bucket / width;
    const before = new Float64Array(numClasses);
    for (let x = 0; x <= width; x++) {
      const place = Math.min(count, Math.max(0, (start - this.from) / this.bucket + x * perPixel));
      const whole = Math.min(count - 1, Math.floor(place));
      const part = place - whole;
      for (let c = 0; c < numClasses; c++) {
        const filled = sums[whole * numClasses + c] + part * bytes[whole * numClasses + c];
        if (x) shares[(x - 1) * numClasses + c] = (filled - before[c]) / (255 * perPixel);
        before[c] = filled;
      }
    }
    return shares;
  }
}

/** @typedef {Exact | Shares} Piece */

/** Holds one answer: a piece for each of its tracks, and for each of its groups. */
export class Sheet {
  /**
   * @param {Map<number, Piece>} tracks
   * @param {Map<string, Shares>} groups by "KIND:NUMBER"
   * @param {{from: number, to: number, bucket: number, colour: string}} extent
   */
  constructor(tracks, groups, { from, to, bucket, colour }) {
    this.tracks = tracks;
    this.groups = groups;
    this.from = from;
    this.to = to;
    this.bucket = bucket;
    this.colour = colour;
  }
}

/**
 * Returns the sheet of a trace that was sent whole.
 * @param {Columns} columns
 * @param {Int32Array} bounds of the tracks
 */
export function wholeSheet(columns, bounds) {
  const spans = new SpanColumns(columns);
  const tracks = new Map();
  for (let track = 0; track + 1 < bounds.length; track++) {
    tracks.set(
      track,
      new Exact(spans, bounds[track], bounds[track + 1], bounds[track], -Infinity, Infinity),
    );
  }
  return new Sheet(tracks, new Map(), { from: -Infinity, to: Infinity, bucket: 0, colour: "" });
}

/**
 * Reads the answer to a question for a window.
 * @param {{header: any, columns: Columns}} answer
 * @param {Colouring} colouring
 */
export function readSheet({ header, columns }, colouring) {
  const { bucket_ns: bucket, start_ns: from, end_ns: to, by } = header;
  /** @type {Map<number, Piece>} */
  const tracks = new Map();
  const spans = new SpanColumns(columns);
  const bounds = integers(columns, "exact:bounds");
  const firsts = integers(columns, "exact:first");
  integers(columns, "exact:track").forEach((track, i) =>
    tracks.set(track, new Exact(spans, bounds[i], bounds[i + 1], firsts[i], from, to)),
  );
  const pieces = (/** @type {string} */ name) => {
    const bytes = /** @type {Uint8Array} */ (columns.get(`${name}:shares`));
    const keys = integers(columns, `${name}:number`);
    const size = keys.length ? bytes.length / keys.length : 0;
    return Array.from(keys, (key, i) => ({
      key,
      shares: new Shares(bytes.subarray(i * size, (i + 1) * size), bucket, from, colouring),
    }));
  };
  for (const { key, shares } of pieces("track")) tracks.set(key, shares);
  const groups = new Map(pieces("group").map(({ key, shares }) => [`${by}:${key}`, shares]));
  return new Sheet(tracks, groups, { from, to, bucket, colour: header.colour });
}

/** @param {Uint8Array} bytes @param {number} numClasses */
function summed(bytes, numClasses) {
  const sums = new Uint32Array(bytes.length + numClasses);
  for (let i = 0; i < bytes.length; i++) sums[i + numClasses] = sums[i] + bytes[i];
  return sums;
}
