// A window on time: which stretch is in view, from the start of a trace or of a schedule.

const LEAST_NS = 50;

/** Maps nanoseconds to pixels: pixel = (time - start) / span * width. */
export class TimeWindow {
  /**
   * @param {number} total of all there is, in nanoseconds or any other unit
   * @param {number} [least] the shortest stretch
   */
  constructor(total, least = LEAST_NS) {
    this.least = least;
    this.total = Math.max(total, least);
    this.start = 0;
    this.end = this.total;
    this.fit();
  }

  get span() {
    return this.end - this.start;
  }

  /** Shows all of the trace, with a little room on both sides. */
  fit() {
    this.start = -0.01 * this.total;
    this.end = 1.01 * this.total;
  }

  /**
   * Zooms by `factor` about the time at `share` of the width.
   * @param {number} factor
   * @param {number} share 0..1
   */
  zoom(factor, share) {
    const span = Math.min(1.5 * this.total, Math.max(this.least, this.span / factor));
    const still = this.start + share * this.span;
    this._show(still - share * span, span);
  }

  /** Shows more or less after what is in view, so that nothing moves. @param {number} share */
  widen(share) {
    this.end = this.start + share * this.span;
  }

  /** Moves the view by a share of its width. @param {number} share */
  pan(share) {
    this._show(this.start + share * this.span, this.span);
  }

  /**
   * Shows [from, to] with room around it.
   * @param {number} from
   * @param {number} to
   * @param {number} [room]  how many times as much as it is shown
   */
  centre(from, to, room = 1.5) {
    const span = Math.max(this.least, room * (to - from));
    this._show((from + to) / 2 - span / 2, span);
  }

  /**
   * Moves, without zooming, so that [from, to] is in view.
   * @param {number} from
   * @param {number} to
   */
  reveal(from, to) {
    if (to < this.start || from > this.end) this._show((from + to) / 2 - this.span / 2, this.span);
  }

  /** Fills the view with a stretch. @param {number} from @param {number} to */
  frame(from, to) {
    this._show(from, to - from);
  }

  /** @param {number} start @param {number} span */
  _show(start, span) {
    const half = span / 2;
    this.start = Math.min(this.total - half, Math.max(-half, start));
    this.end = this.start + span;
  }

  /** Writes the view as the address bar holds it. */
  toString() {
    const step = this.least / LEAST_NS;
    const rounded = (/** @type {number} */ time) =>
      Number((Math.round(time / step) * step).toPrecision(9));
    return `${rounded(this.start)},${rounded(this.end)}`;
  }

  /** Takes the view that `text` holds; false when it holds none. @param {string} text */
  take(text) {
    const [start, end] = text.split(",").map(Number);
    if (!(Number.isFinite(start) && end - start >= 0.99 * this.least)) return false;
    this._show(start, Math.min(end - start, 1.5 * this.total));
    return true;
  }
}
