// A view of a stretch of time, names at its left: zoom and pan by hand, and the view as a link
// holds it.

import { onThemeChange } from "../theme.js";
import { wheelZoom } from "./gestures.js";
import { Redraw } from "./surface.js";
import { TimeWindow } from "./window.js";

const STEP = 1.35;
const PAN_SHARE = 0.12;
const FRAMES_KEPT = 300;

/**
 * @typedef {object} Moves
 * @property {() => void} draw
 * @property {() => void} moved                     the view has changed by hand
 * @property {(pixels: number) => void} scroll      moves the rows
 * @property {() => boolean} overflows              whether there are rows out of view
 */

/** Shows time across, as the timeline and the stacked schedules do. */
export class TimeView {
  /**
   * @param {import("./surface.js").Surface} surface
   * @param {number} gutter pixels that names take at the left
   * @param {Moves} moves
   */
  constructor(surface, gutter, moves) {
    this.surface = surface;
    this.gutter = gutter;
    this.moves = moves;
    this.redraw = new Redraw(() => this._timed());
    this.time = new TimeWindow(1, 1);
    this.byHand = false;
    this.pointer = { x: -1, y: -1 };
    /**
     * How often it was drawn, and how long the last frames took.
     * @type {{frames: number, ms: number[]}}
     */
    this.drawings = { frames: 0, ms: [] };
    onThemeChange(() => this.redraw.request());
  }

  /**
   * Takes how long all there is lasts, and shows it.
   * @param {number} total in nanoseconds or any other unit
   * @param {number} [least] the shortest stretch
   */
  last(total, least) {
    this.time = new TimeWindow(total, least);
  }

  /** Shows all there is. */
  fit() {
    this.time.fit();
    this.byHand = false;
    this.redraw.request();
    this.moves.moved();
  }

  /** Zooms about the pointer, or the middle. @param {number} strength below 0 zooms out */
  zoom(strength) {
    const share = this.surface.canvas.matches(":hover") ? this._share(this.pointer.x) : 0.5;
    this._move(() => this.time.zoom(STEP ** strength, share));
  }

  /** Moves the view by a share of its width. @param {number} share */
  pan(share) {
    this._move(() => this.time.pan(share));
  }

  /** Moves the view to the right by a key's worth. @param {number} strength */
  step(strength) {
    this.pan(strength * PAN_SHARE);
  }

  /**
   * Moves what is in view along with the pointer.
   * @param {number} dx
   * @param {number} dy in pixels
   */
  drag(dx, dy) {
    this.pan(-dx / this._wide());
    this.moves.scroll(-dy);
  }

  /**
   * Ctrl zooms, Shift pans; else rows scroll, or the time zooms where all rows are in view.
   * @param {number} x
   * @param {WheelEvent} event
   */
  wheel(x, event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!event.ctrlKey && sideways) this.pan(sideways / this._wide());
    else if (event.ctrlKey || !this.moves.overflows())
      this._move(() => this.time.zoom(wheelZoom(event), this._share(x)));
    else this.moves.scroll(event.deltaY);
  }

  /** Writes the view as the address bar holds it; "" when all is shown. */
  toString() {
    return this.byHand ? String(this.time) : "";
  }

  /** Takes the view that `text` holds, or shows all. @param {string} text */
  take(text) {
    if (text === String(this)) return;
    this.byHand = this.time.take(text);
    if (!this.byHand) this._rest();
    this.redraw.request();
  }

  /** Returns where the pointer is, in pixels of the page. */
  pointerOnPage() {
    const { left, top } = this.surface.canvas.getBoundingClientRect();
    return { x: left + this.pointer.x, y: top + this.pointer.y };
  }

  /**
   * Returns the pixels of the canvas that the view's part of [start, end] takes.
   * @param {number} start
   * @param {number} end
   */
  extent(start, end) {
    return {
      from: Math.max(this.gutter, this.toPixel(start)),
      to: Math.min(this.surface.width, this.toPixel(end)),
    };
  }

  /** @param {number} x */
  timeAt(x) {
    return this.time.start + ((x - this.gutter) / this._wide()) * this.time.span;
  }

  /** @param {number} time */
  toPixel(time) {
    return this.gutter + ((time - this.time.start) / this.time.span) * this._wide();
  }

  /**
   * Takes the size of the frame; true when it has changed. Where a column comes or goes beside it,
   * what is under the pointer stays there, so that a double click finds what the first one chose;
   * what is chosen stays in view, and whole where it was.
   * @param {{start: number, end: number} | null | undefined} chosen
   */
  _resize(chosen) {
    const { surface, time } = this;
    const wasWide = surface.width - this.gutter;
    const isSeen = chosen && chosen.start <= time.end && chosen.end >= time.start;
    const isWhole = chosen && chosen.start >= time.start && chosen.end <= time.end;
    if (!surface.frame.clientWidth || !surface.resize()) return false;
    if (wasWide > 0 && surface.canvas.matches(":hover")) time.widen(this._wide() / wasWide);
    else if (!this.byHand) this._rest();
    if (isWhole && chosen.end - chosen.start > time.span) time.frame(chosen.start, chosen.end);
    else if (isSeen) time.reveal(chosen.start, chosen.end);
    return true;
  }

  /** Shows what is in view where nothing was moved by hand. */
  _rest() {
    this.time.fit();
  }

  /** @param {() => void} move */
  _move(move) {
    move();
    this.byHand = true;
    this.redraw.request();
    this.moves.moved();
  }

  /** @param {number} x */
  _share(x) {
    return Math.min(1, Math.max(0, (x - this.gutter) / this._wide()));
  }

  _wide() {
    return Math.max(1, this.surface.width - this.gutter);
  }

  _timed() {
    const before = performance.now();
    const { ms } = this.drawings;
    this.moves.draw();
    this.drawings.frames++;
    if (ms.push(performance.now() - before) > FRAMES_KEPT) ms.shift();
  }
}
