// The timeline: its view of a trace, what the pointer and the keys do to it.

import { listen, wheelZoom } from "./gestures.js";
import { Redraw, Surface } from "./surface.js";
import { onThemeChange, theme } from "./theme.js";
import { AXIS, GUTTER, paintTimeline, timeToPixel } from "./timelinepaint.js";
import { TimeWindow } from "./timewindow.js";
import { laneBox } from "./tracks.js";

const LEAST_ROW = 12;
const MOST_ROW = 42;
const STEP = 1.35;
const PAN_SHARE = 0.12;
const SLACK_PIXELS = 3;

/**
 * @typedef {object} TimelineEvents
 * @property {(span: number, rank: number) => void} hover  -1, -1 where there is none
 * @property {(span: number, rank: number) => void} pin    -1 beside every span
 * @property {() => void} moved                            the view has changed by hand
 */

/** Draws the tracks of one trace. */
export class TimelineView {
  /**
   * @param {HTMLElement} frame @param {HTMLCanvasElement} canvas @param {TimelineEvents} events
   * @param {{row: (row: import("./tracks.js").Row) => [string, string], step: (step: number) => string}} names
   */
  constructor(frame, canvas, events, names) {
    this.surface = new Surface(canvas, frame);
    this.events = events;
    this.names = names;
    /** @type {import("./tracks.js").Tracks | null} */
    this.tracks = null;
    this.time = new TimeWindow(1);
    this.byHand = false;
    this.scrolled = 0;
    this.selected = -1;
    this.hovered = -1;
    this.pinnedRank = -1;
    /** @type {import("./lit.js").Lit | null} */
    this.lit = null;
    /** @type {import("./scene.js").Kind[]} */
    this.kinds = [];
    this.pointer = { x: 0, y: 0 };
    this.drawn = { frames: 0, spans: 0 };
    this.redraw = new Redraw(() => this._draw());
    listen(this.surface, {
      hover: (x, y) => this._hover(x, y),
      leave: () => this._hover(-1, -1),
      click: (x, y) => {
        const { span, rank } = this.at(x, y);
        events.pin(span, rank);
      },
      drag: (dx, dy) => {
        this.pan(-dx / this._wide());
        this.scroll(-dy);
      },
      wheel: (x, _y, event) => this._wheel(x, event),
    });
    new ResizeObserver(() => {
      if (this.surface.resize()) this.redraw.request();
    }).observe(frame);
    onThemeChange(() => this.redraw.request());
  }

  /** Shows a trace. @param {import("./tracks.js").Tracks} tracks */
  show(tracks) {
    this.tracks = tracks;
    this.time = new TimeWindow(tracks.total);
    this.byHand = false;
    this.scrolled = 0;
    this.selected = -1;
    this.hovered = -1;
    this.redraw.request();
  }

  /**
   * Shows what is lit and pinned elsewhere.
   * @param {import("./lit.js").Lit | null} lit @param {import("./scene.js").Kind[]} kinds
   * @param {number} pinnedRank
   */
  light(lit, kinds, pinnedRank) {
    Object.assign(this, { lit, kinds, pinnedRank });
    this.redraw.request();
  }

  /** Selects a span, -1 for none. @param {number} span */
  select(span) {
    this.selected = this.tracks && span < this.tracks.length ? span : -1;
    this.redraw.request();
  }

  /** Brings a span into view. @param {number} span */
  reveal(span) {
    if (!this.tracks || span < 0) return;
    this.time.reveal(this.tracks.start[span], this.tracks.end[span]);
    this.revealRank(this.tracks.rank[span]);
  }

  /** Scrolls the row of a rank into view. @param {number} rank */
  revealRank(rank) {
    const number = this.tracks?.rowOf(rank) ?? -1;
    if (number < 0) return;
    const top = number * this.rowHeight;
    const shown = this.surface.height - AXIS;
    if (top < this.scrolled) this.scrolled = top;
    if (top + this.rowHeight > this.scrolled + shown) this.scrolled = top + this.rowHeight - shown;
    this.redraw.request();
  }

  /** Shows all of the trace. */
  fit() {
    this.time.fit();
    this.byHand = false;
    this.redraw.request();
    this.events.moved();
  }

  /** Shows the selected span and its surroundings. */
  centre() {
    if (!this.tracks || this.selected < 0) return this.fit();
    const { start, end } = this.tracks;
    this._move(() => this.time.centre(start[this.selected], end[this.selected]));
  }

  /** Zooms about the pointer, or the middle. @param {number} strength below 0 zooms out */
  zoom(strength) {
    const share = this.surface.canvas.matches(":hover") ? (this.pointer.x - GUTTER) / this._wide() : 0.5;
    this._move(() => this.time.zoom(STEP ** strength, Math.min(1, Math.max(0, share))));
  }

  /** Moves the view by a share of its width. @param {number} share */
  pan(share) {
    this._move(() => this.time.pan(share));
  }

  /** Moves the view to the right by a key's worth. @param {number} strength */
  step(strength) {
    this.pan(strength * PAN_SHARE);
  }

  /** Scrolls the rows by pixels. @param {number} pixels */
  scroll(pixels) {
    this.scrolled += pixels;
    this._keepRows();
    this.redraw.request();
  }

  /** Returns the span beside the selected one, or a first one; -1 without a trace. @param {number} by */
  beside(by) {
    if (!this.tracks?.length) return -1;
    return this.selected < 0 ? 0 : this.tracks.beside(this.selected, by);
  }

  /** Returns the span of the rank above or below nearest in time to the selected one. @param {number} by */
  across(by) {
    const { tracks } = this;
    if (!tracks || this.selected < 0) return this.beside(by);
    const row = tracks.rows[tracks.rowOf(tracks.rank[this.selected]) + by];
    if (!row) return this.selected;
    const middle = (tracks.start[this.selected] + tracks.end[this.selected]) / 2;
    const found = tracks.spanAt(row.track, middle, tracks.total);
    return found < 0 ? this.selected : found;
  }

  get rowHeight() {
    const shown = this.surface.height - AXIS;
    const count = Math.max(1, this.tracks?.rows.length ?? 1);
    return Math.min(MOST_ROW, Math.max(LEAST_ROW, Math.floor(shown / count)));
  }

  /** Returns the span and the rank under a point, -1 where there is none. @param {number} x @param {number} y */
  at(x, y) {
    const none = { span: -1, rank: -1 };
    if (!this.tracks || y < AXIS || x < 0) return none;
    const number = Math.floor((y - AXIS + this.scrolled) / this.rowHeight);
    const row = this.tracks.rows[number];
    if (!row) return none;
    if (x < GUTTER) return { span: -1, rank: row.rank };
    const within = (y - AXIS + this.scrolled - number * this.rowHeight) / this.rowHeight;
    let lane = 0;
    while (lane + 1 < row.lanes && within > laneBox(lane + 1, row.lanes).top) lane++;
    const perPixel = this.time.span / this._wide();
    const time = this.time.start + (x - GUTTER) * perPixel;
    const span = this.tracks.spanAt(row.track + lane, time, SLACK_PIXELS * perPixel);
    return { span, rank: span < 0 ? -1 : row.rank };
  }

  /** Returns the middle of a span's part in view, in pixels of the page; null when it is not. @param {number} span */
  where(span) {
    const { tracks, time } = this;
    if (!tracks || tracks.end[span] < time.start || tracks.start[span] > time.end) return null;
    const picture = this._picture();
    if (!picture) return null;
    const { left, top } = this.surface.canvas.getBoundingClientRect();
    const from = Math.max(GUTTER, timeToPixel(picture, tracks.start[span]));
    const to = Math.min(this.surface.width, timeToPixel(picture, tracks.end[span]));
    const number = tracks.rowOf(tracks.rank[span]);
    const row = tracks.rows[number];
    const box = laneBox(tracks.trackOf[span] - row.track, row.lanes);
    const middle = box.top + box.height / 2;
    return { x: left + (from + to) / 2, y: top + AXIS + (number + middle) * this.rowHeight - this.scrolled };
  }

  /** Writes the view as the address bar holds it; "" when all is shown. */
  toString() {
    return this.byHand ? String(this.time) : "";
  }

  /** Takes the view that `text` holds, or shows all. @param {string} text */
  take(text) {
    if (text === String(this)) return;
    this.byHand = this.time.take(text);
    if (!this.byHand) this.time.fit();
    this.redraw.request();
  }

  /** Returns where the pointer is, in pixels of the page. */
  pointerOnPage() {
    const { left, top } = this.surface.canvas.getBoundingClientRect();
    return { x: left + this.pointer.x, y: top + this.pointer.y };
  }

  /** @param {() => void} move */
  _move(move) {
    if (!this.tracks) return;
    move();
    this.byHand = true;
    this.redraw.request();
    this.events.moved();
  }

  /** @param {number} x @param {number} y */
  _hover(x, y) {
    this.pointer = { x, y };
    const { span, rank } = this.at(x, y);
    this.hovered = span;
    this.redraw.request();
    this.events.hover(span, rank);
  }

  /** Ctrl zooms, Shift pans; else rows scroll, or the time zooms where all rows are in view. @param {number} x @param {WheelEvent} event */
  _wheel(x, event) {
    const overflows = (this.tracks?.rows.length ?? 0) * this.rowHeight > this.surface.height - AXIS;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!event.ctrlKey && sideways) this.pan(sideways / this._wide());
    else if (event.ctrlKey || !overflows) {
      const share = Math.min(1, Math.max(0, (x - GUTTER) / this._wide()));
      this._move(() => this.time.zoom(wheelZoom(event), share));
    } else this.scroll(event.deltaY);
  }

  _keepRows() {
    const all = (this.tracks?.rows.length ?? 0) * this.rowHeight;
    const most = Math.max(0, all - (this.surface.height - AXIS));
    this.scrolled = Math.min(most, Math.max(0, this.scrolled));
  }

  _wide() {
    return Math.max(1, this.surface.width - GUTTER);
  }

  _picture() {
    const { tracks } = this;
    if (!tracks || !this.surface.width) return null;
    return {
      tracks,
      time: this.time,
      surface: this.surface,
      theme: theme(),
      rowHeight: this.rowHeight,
      scrolled: this.scrolled,
      lit: this.lit,
      kinds: this.kinds,
      selected: this.selected,
      hovered: this.hovered,
      pinnedRank: this.pinnedRank,
      rowName: this.names.row,
      stepName: this.names.step,
    };
  }

  _draw() {
    this.surface.resize();
    this._keepRows();
    const picture = this._picture();
    if (!picture) return;
    this.drawn.spans = paintTimeline(picture);
    this.drawn.frames++;
  }
}
