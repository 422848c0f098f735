// A number that rises and falls as a rank's actions run: the activations it holds, at every moment.
//
//   F raises it when it starts, a backward lowers it when it ends:   held after it   1 2 3 2 3 2
//
// The most in any stretch is found in blocks of blocks, so a pixel never loses a peak, however
// many actions lie in it.

import { countOn, countUpTo } from "../../base/coverage.js";

const BLOCK = 16;
/** What rounding may be off, in pixels: an action that starts as a pixel ends is not in it. */
const SLACK = 1e-6;

/** Holds the level of one rank. */
export class Level {
  /**
   * @param {Float64Array} start
   * @param {Float64Array} end
   * @param {ArrayLike<number>} held after each action
   */
  constructor(start, end, held) {
    this.start = start;
    this.end = end;
    this.held = held;
    const during = new Float64Array(held.length);
    for (let i = 0; i < held.length; i++) during[i] = Math.max(i ? held[i - 1] : 0, held[i]);
    /** Most of each action, of each block of them, of each block of blocks … */
    this.most = [during];
    for (let below = during; below.length > 1;) {
      const blocks = new Float64Array(Math.ceil(below.length / BLOCK));
      for (let i = 0; i < below.length; i++)
        blocks[Math.floor(i / BLOCK)] = Math.max(blocks[Math.floor(i / BLOCK)], below[i]);
      this.most.push(blocks);
      below = blocks;
    }
  }

  /** The most there ever is. */
  get peak() {
    return this.most[this.most.length - 1][0] ?? 0;
  }

  /** Returns the level at a moment. @param {number} time */
  at(time) {
    const last = countUpTo(this.start, time) - 1;
    if (last < 0) return 0;
    return time < this.end[last] ? this.most[0][last] : this.held[last];
  }

  /**
   * Writes the most in each of `width` equal pixels of [from, to].
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {Float64Array} into
   */
  peaks(from, to, width, into) {
    const step = (to - from) / width;
    let begun = countUpTo(this.start, from);
    for (let pixel = 0; pixel < width; pixel++) {
      const until = from + (pixel + 1 - SLACK) * step;
      const last = begun - 1;
      // What is held as the pixel begins: that of a running action, or what the last one left.
      const first =
        last < 0 ? 0 : this.end[last] > from + pixel * step ? this.most[0][last] : this.held[last];
      const next = countOn(this.start, begun, until);
      into[pixel] = next > begun ? Math.max(first, this._most(begun, next)) : first;
      begun = next;
    }
  }

  /** Returns the most of actions [first, last). @param {number} first @param {number} last */
  _most(first, last) {
    let most = 0;
    for (let level = 0; first < last; level++) {
      const values = this.most[level];
      while (first < last && first % BLOCK) most = Math.max(most, values[first++]);
      while (first < last && last % BLOCK) most = Math.max(most, values[--last]);
      first /= BLOCK;
      last /= BLOCK;
    }
    return most;
  }
}
