// Exact coverage: the share of every pixel that each class of spans fills, from running sums.
//
//   spans      |--F--|   |--B--|--B--|        sums[F]  0 5 5 5      sums[B]  0 0 5 10
//   pixel          |-------|                  filled before its end - filled before its start
//
// Painting spans that are narrower than a pixel one over another shows stripes that are not there.

/** @typedef {{start: Float64Array, end: Float64Array, class: Uint8Array}} Spans  of one track, in order, apart */

/** Holds the running sums of one track. */
export class Coverage {
  /** @param {Spans} spans @param {number} numClasses */
  constructor(spans, numClasses) {
    this.spans = spans;
    const count = spans.start.length;
    /** @type {Float64Array[]} */
    this.sums = Array.from({ length: numClasses }, () => new Float64Array(count + 1));
    for (let i = 0; i < count; i++) {
      for (const sums of this.sums) sums[i + 1] = sums[i];
      this.sums[spans.class[i]][i + 1] += spans.end[i] - spans.start[i];
    }
  }

  /**
   * Adds the shares of `width` equal pixels of [start, end] to `shares`, class by class:
   * shares[pixel * classes + class] is between 0 and 1.
   * @param {number} start @param {number} end @param {number} width
   */
  shares(start, end, width) {
    const classes = this.sums.length;
    const shares = new Float64Array(width * classes);
    const step = (end - start) / width;
    const before = new Float64Array(classes);
    const after = new Float64Array(classes);
    this._filled(start, before);
    for (let pixel = 0; pixel < width; pixel++) {
      this._filled(start + (pixel + 1) * step, after);
      for (let c = 0; c < classes; c++) {
        shares[pixel * classes + c] = (after[c] - before[c]) / step;
        before[c] = after[c];
      }
    }
    return shares;
  }

  /** Writes the time that each class fills before `time`. @param {number} time @param {Float64Array} filled */
  _filled(time, filled) {
    const { start, end } = this.spans;
    const begun = countUpTo(start, time);
    for (let c = 0; c < filled.length; c++) filled[c] = this.sums[c][begun];
    const last = begun - 1;
    if (last >= 0 && end[last] > time) filled[this.spans.class[last]] -= end[last] - time;
  }
}

/** Returns how many values of an ascending array are at most `limit`. @param {Float64Array} values @param {number} limit */
export function countUpTo(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
