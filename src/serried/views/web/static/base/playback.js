// The clock of a player: a time that runs, goes step by step, or is dragged.

/** Seconds on the wall: of a step, and at least and at most of all, at the usual speed. */
const STEP_S = 0.9;
const LEAST_S = 3;
const MOST_S = 40;
/** Part of a step within which a moment is taken for its border. */
const NEAR = 1e-6;

export const SPEEDS = [0.25, 0.5, 1, 2, 4];

/** Holds the moment that is shown, and whether it moves. */
export class Playback {
  constructor() {
    this.time = 0;
    this.isPlaying = false;
    this.speed = 1;
    /** Borders of steps, ascending, the end last. @type {number[]} */
    this.borders = [0];
  }

  get total() {
    return this.borders[this.borders.length - 1];
  }

  /**
   * Takes the steps that are shown: when each ends, of every algorithm in view.
   * @param {ArrayLike<number>[]} ends
   */
  take(ends) {
    const all = [0, ...ends.flatMap((each) => Array.from(each))].sort((a, b) => a - b);
    const near = NEAR * ((all[all.length - 1] ?? 0) / Math.max(1, all.length));
    this.borders = all.filter((time, i) => !i || time - all[i - 1] > near);
    this.time = Math.min(this.time, this.total);
    if (!this.total) this.isPlaying = false;
  }

  /** Lets it run, from the beginning where it has ended, or holds it. */
  toggle() {
    if (!this.isPlaying && this.time >= this.total) this.time = 0;
    this.isPlaying = !this.isPlaying && this.total > 0;
  }

  /** Moves on by what has passed on the wall. @param {number} seconds */
  pass(seconds) {
    if (!this.isPlaying) return;
    this.time = Math.min(this.total, this.time + (seconds * this.total) / this.lasts());
    if (this.time >= this.total) this.isPlaying = false;
  }

  /** Returns how many seconds on the wall all of it takes. */
  lasts() {
    const steps = this.borders.length - 1;
    return Math.min(MOST_S, Math.max(LEAST_S, steps * STEP_S)) / this.speed;
  }

  /** Goes to a time and stays there. @param {number} time */
  seek(time) {
    this.isPlaying = false;
    this.time = Math.min(this.total, Math.max(0, time));
  }

  /** Goes to the next border of a step, or the one before. @param {1 | -1} way */
  step(way) {
    const near = NEAR * this.total;
    const next =
      way > 0
        ? this.borders.find((border) => border > this.time + near)
        : this.borders.findLast((border) => border < this.time - near);
    this.seek(next ?? (way > 0 ? this.total : 0));
  }
}
