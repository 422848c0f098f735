// Exact coverage: the share of every pixel that each class of spans fills, from running sums.
//
//   spans      |--F--|   |--B--|--B--|        sums[F]  0 5 5 5      sums[B]  0 0 5 10
//   pixel          |-------|                  filled before its end - filled before its start
//
// Painting spans that are narrower than a pixel one over another shows stripes that are not there.

/**
 * @typedef {object} Spans  of one track, in order, apart
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Uint8Array} class
 */

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
   * @param {number} start
   * @param {number} end
   * @param {number} width
   */
  shares(start, end, width) {
    const classes = this.sums.length;
    const shares = new Float64Array(width * classes);
    const step = (end - start) / width;
    const before = new Float64Array(classes);
    const after = new Float64Array(classes);
    const starts = this.spans.start;
    let begun = countUpTo(starts, start);
    this._filled(start, begun, before);
    for (let pixel = 0; pixel < width; pixel++) {
      const time = start + (pixel + 1) * step;
      begun = countOn(starts, begun, time);
      this._filled(time, begun, after);
      for (let c = 0; c < classes; c++) {
        shares[pixel * classes + c] = (after[c] - before[c]) / step;
        before[c] = after[c];
      }
    }
    return shares;
  }

  /**
   * Writes the time that each class fills before `time`, when `begun` spans have begun.
   * @param {number} time
   * @param {number} begun
   * @param {Float64Array} filled
   */
  _filled(time, begun, filled) {
    const { end } = this.spans;
    for (let c = 0; c < filled.length; c++) filled[c] = this.sums[c][begun];
    const last = begun - 1;
    if (last >= 0 && end[last] > time) filled[this.spans.class[last]] -= end[last] - time;
  }
}

/**
 * Returns how many values of an ascending array are at most `limit`, when the first `from` are:
 * found in steps that double, so that the next pixel costs little.
 * @param {Float64Array} values
 * @param {number} from
 * @param {number} limit
 */
export function countOn(values, from, limit) {
  let step = 1;
  let low = from;
  while (low + step <= values.length && values[low + step - 1] <= limit) {
    low += step;
    step *= 2;
  }
  let high = Math.min(values.length, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Returns how many values of an ascending array are at most `limit`.
 * @param {ArrayLike<number>} values
 * @param {number} limit
 */
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

/** Joins stretches that meet. @param {[number, number][]} stretches */
export function merged(stretches) {
  /** @type {[number, number][]} */
  const apart = [];
  for (const [from, to] of stretches.sort((one, other) => one[0] - other[0])) {
    const last = apart[apart.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else apart.push([from, to]);
  }
  return apart;
}
