// The stacked schedules: one window on time for all, what the pointer and the keys do to it.

import { listen } from "../base/canvas/gestures.js";
import { Pixels } from "../base/canvas/pixels.js";
import { Surface } from "../base/canvas/surface.js";
import { TimeView } from "../base/canvas/view.js";
import { theme } from "../base/theme.js";
import { Stack } from "./model/stack.js";
import { GUTTER } from "./paint/picture.js";
import { paintScheduleAxis, paintSchedules } from "./paint/stack.js";

/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {import("./paint/picture.js").Spot} Spot */
/**
 * @typedef {object} Names
 * @property {(data: Simulated, rank: number) => [string, string]} row
 * @property {(data: Simulated, rank: number) => string} peak
 * @property {(data: Simulated, idle: number) => string[]} cause
 * @property {() => string} axis
 */
/**
 * @typedef {object} ScheduleEvents
 * @property {(spot: Spot | null) => void} hover
 * @property {(spot: Spot | null) => void} choose
 * @property {() => void} moved
 * @property {(stack: Stack) => void} laid
 */

/** The shortest window, in shortest actions. */
const NEAREST = 0.5;

/** Draws schedules one under another. */
export class ScheduleView extends TimeView {
  /**
   * @param {{frame: HTMLElement, scroller: HTMLElement, canvas: HTMLCanvasElement, axis:
   *   HTMLCanvasElement}} parts
   * @param {ScheduleEvents} events
   * @param {Names} names
   */
  constructor({ frame, scroller, canvas, axis }, events, names) {
    super(new Surface(canvas, scroller), GUTTER, {
      draw: () => this._draw(),
      moved: () => events.moved(),
      scroll: (pixels) => void (scroller.scrollTop += pixels),
      overflows: () => this.overflows(),
    });
    this.scroller = scroller;
    this.axis = new Surface(axis, /** @type {HTMLElement} */ (axis.parentElement));
    this.events = events;
    this.names = names;
    /** @type {(Simulated | null)[]} */
    this.blocks = [];
    this.stack = new Stack([], 0, false);
    this.pixels = new Pixels();
    this.showPath = false;
    this.showStrips = true;
    this.isOnPaper = false;
    /** @type {Spot | null} */
    this.hovered = null;
    /** @type {Spot | null} */
    this.chosen = null;
    /** @type {number[]} */
    this.kin = [];
    /** How many actions were drawn one by one. */
    this.drawnActions = 0;
    listen(this.surface, {
      hover: (x, y) => this._hover(x, y),
      leave: () => this._hover(-1, -1),
      click: (x, y) => events.choose(this.at(x, y)),
      drag: (dx, dy) => this.drag(dx, dy),
      wheel: (x, _y, event) => this.wheel(x, event),
    });
    scroller.addEventListener("scroll", () => this.redraw.request());
    new ResizeObserver(() => this._lay()).observe(frame);
  }

  /**
   * Shows schedules, from the top; the window stays where it was moved to by hand.
   * @param {(Simulated | null)[]} blocks
   */
  show(blocks) {
    this.blocks = blocks;
    const shown = blocks.filter((data) => data !== null);
    const total = Math.max(0, ...shown.map(({ header }) => header.makespan));
    const least = Math.min(...shown.map((data) => NEAREST * shortest(data)));
    const { start, end } = this.time;
    this.last(total || 1, Number.isFinite(least) ? Math.min(least, total / 4) || total / 4 : 1);
    if (this.byHand) this.time.take(`${start},${end}`);
    this.hovered = null;
    this._lay();
  }

  /** Shows what is chosen. @param {Spot | null} spot */
  choose(spot) {
    this.chosen = spot;
    const data = spot ? this.blocks[spot.block] : null;
    this.kin = spot && data && spot.entry >= 0 ? data.sameMicrobatch(spot.entry) : [];
    this.redraw.request();
  }

  /** Sets what is drawn beside the actions. @param {boolean} strips @param {boolean} path */
  draw(strips, path) {
    this.showPath = path;
    this.showStrips = strips;
    this._lay();
  }

  /** Shows the chosen action and its surroundings. */
  centre() {
    const extent = this._extent(this.chosen);
    if (!extent) return this.fit();
    this._move(() =>
      this.time.centre(
        extent.start - 4 * (extent.end - extent.start),
        extent.end + 4 * (extent.end - extent.start),
      ),
    );
  }

  /** Brings the chosen spot into view. */
  reveal() {
    const extent = this._extent(this.chosen);
    if (!extent || !this.chosen) return;
    const { start } = this.time;
    this.time.reveal(extent.start, extent.end);
    if (this.time.start !== start) this._move(() => {});
    const top = this.stack.rowTop(this.chosen.block, this.chosen.rank);
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top - 4;
    else if (top + this.stack.row > scrollTop + clientHeight)
      this.scroller.scrollTop = top + this.stack.row - clientHeight + 4;
    this.redraw.request();
  }

  /**
   * Returns the spot beside the chosen one on its rank, or a first one; null where nothing is
   * drawn.
   * @param {number} by
   * @returns {Spot | null}
   */
  beside(by) {
    const { chosen } = this;
    const data = chosen && this.blocks[chosen.block];
    if (!chosen || !data || chosen.entry < 0) return this._first();
    const entry = Math.min(
      data.bounds[chosen.rank + 1] - 1,
      Math.max(data.bounds[chosen.rank], chosen.entry + by),
    );
    return spotOf(chosen.block, chosen.rank, entry, data.drawn.start[entry]);
  }

  /**
   * Returns the spot of the rank above or below, in the next schedule past the last one.
   * @param {number} by
   * @returns {Spot | null}
   */
  across(by) {
    const { chosen } = this;
    const data = chosen && this.blocks[chosen.block];
    if (!chosen || !data || chosen.entry < 0) return this._first();
    let [block, rank] = [chosen.block, chosen.rank + by];
    while (this.blocks[block] && (rank < 0 || rank >= (this.blocks[block]?.numRanks ?? 0))) {
      block += by;
      rank = by > 0 ? 0 : (this.blocks[block]?.numRanks ?? 0) - 1;
    }
    const other = this.blocks[block];
    if (!other) return chosen;
    const middle = (data.drawn.start[chosen.entry] + data.drawn.end[chosen.entry]) / 2;
    const entry = other.nearest(rank, middle);
    return spotOf(block, rank, entry, other.drawn.start[entry]);
  }

  /**
   * Returns what is under a point; null beside every row.
   * @param {number} x
   * @param {number} y
   * @returns {Spot | null}
   */
  at(x, y) {
    const row = x < 0 || y < 0 ? null : this.stack.at(y + this.scroller.scrollTop);
    const data = row && this.blocks[row.block];
    if (!row || !data) return null;
    const time = this.timeAt(x);
    if (x < GUTTER || time < 0 || time > data.header.makespan) return null;
    const entry = data.entryAt(row.rank, time);
    return { ...row, time, entry, idle: entry < 0 ? data.idleAt(row.rank, time) : -1 };
  }

  /**
   * Returns the middle of an extent's part in view, in pixels of the page; null when it is not.
   * @param {number} block
   * @param {number} rank
   * @param {number} start
   * @param {number} end
   */
  where(block, rank, start, end) {
    if (end < this.time.start || start > this.time.end) return null;
    const { left, top } = this.surface.canvas.getBoundingClientRect();
    const { from, to } = this.extent(start, end);
    return {
      x: left + (from + to) / 2,
      y: top + this.stack.rowTop(block, rank) + this.stack.bar / 2 - this.scroller.scrollTop,
    };
  }

  /** @param {Spot | null} spot */
  _extent(spot) {
    const data = spot && this.blocks[spot.block];
    if (!spot || !data) return null;
    if (spot.entry >= 0)
      return { start: data.drawn.start[spot.entry], end: data.drawn.end[spot.entry] };
    return spot.idle >= 0
      ? { start: data.idle.start[spot.idle], end: data.idle.end[spot.idle] }
      : null;
  }

  _first() {
    const block = this.blocks.findIndex((data) => data !== null);
    return block < 0 ? null : spotOf(block, 0, 0, 0);
  }

  /** @param {number} x @param {number} y */
  _hover(x, y) {
    this.pointer = { x, y };
    this.hovered = this.at(x, y);
    this.redraw.request();
    this.events.hover(this.hovered);
  }

  /** Lays the blocks out anew, as tall as the frame allows. */
  _lay() {
    // On paper sheets stand in its place (sheets.js), and it has no height.
    if (this.isOnPaper) return;
    this.surface.canvas.style.height = `${this.scroller.clientHeight}px`;
    const ranks = this.blocks.map((data) => data?.numRanks ?? 0);
    this.stack = new Stack(ranks, this.scroller.clientHeight, this.showStrips);
    this.events.laid(this.stack);
    this.redraw.request();
  }

  /** Whether there is more than can be seen at once. */
  overflows() {
    return this.stack.height > this.scroller.clientHeight;
  }

  /**
   * Returns what is painted.
   * @param {import("../base/theme.js").Theme} colours
   * @returns {import("./paint/picture.js").Shown}
   */
  shown(colours) {
    return {
      ...this,
      surface: this.surface,
      theme: colours,
      scrolled: this.scroller.scrollTop,
      rowName: this.names.row,
      peakName: this.names.peak,
      causeName: this.names.cause,
    };
  }

  _draw() {
    this._resize(this._extent(this.chosen));
    this.axis.resize();
    if (!this.surface.width) return;
    const colours = theme();
    this.drawnActions = paintSchedules(this.shown(colours));
    const at = this.pointer.x < GUTTER ? NaN : this.timeAt(this.pointer.x);
    paintScheduleAxis(this.axis, this.time, colours, this.names.axis(), at);
  }
}

/**
 * @param {number} block
 * @param {number} rank
 * @param {number} entry
 * @param {number} time
 * @returns {Spot}
 */
export function spotOf(block, rank, entry, time) {
  return { block, rank, entry, idle: -1, time, isStrip: false };
}

/**
 * Returns how long the shortest action takes; the makespan where none takes any time.
 * @param {Simulated} data
 */
function shortest({ drawn, header }) {
  let least = header.makespan;
  for (let i = 0; i < drawn.start.length; i++) {
    const length = drawn.end[i] - drawn.start[i];
    if (length > 0 && length < least) least = length;
  }
  return least;
}
