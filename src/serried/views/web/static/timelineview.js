// The timeline: its view of a trace, what the pointer and the keys do to it.
//
// What others may add: `layers` are painted over the tracks, in their order; `range` is what was
// drawn with Shift held; a colouring is a class of colour for each span (timelinecolours.js).

import { listen, wheelZoom } from "./gestures.js";
import { Pixels } from "./pixels.js";
import { Redraw, Surface } from "./surface.js";
import { onThemeChange, theme } from "./theme.js";
import { colouringOf } from "./timelinecolours.js";
import { paintArrows, paintChosen, paintRange } from "./timelinelayers.js";
import { Loader } from "./timelineloader.js";
import { AXIS, GUTTER, boxOf, paintTimeline } from "./timelinepaint.js";
import { Lines } from "./timelinerows.js";
import { TimeWindow } from "./timewindow.js";
import { laneBox } from "./tracks.js";

const STEP = 1.35;
const PAN_SHARE = 0.12;
const SLACK_PIXELS = 3;
const FRAMES_KEPT = 300;

/** @typedef {import("./tracks.js").Row} Row */
/** @typedef {import("./timelinerows.js").Grouping} Grouping */
/** @typedef {import("./timelinerange.js").Range} Range */
/**
 * @typedef {object} Spot  what is under a point
 * @property {number | null} span  -1 where there is none, null where it has not been sent
 * @property {number} rank         -1 beside every row
 * @property {number} track        -1 beside every track
 * @property {number} time
 * @property {number} slack        nanoseconds that count as near
 * @property {number | null} group  whose heading it is, null for none
 */
/**
 * @typedef {object} TimelineEvents
 * @property {(spot: Spot) => void} hover
 * @property {(spot: Spot) => void} click
 * @property {() => void} fit                         a double click: the selected span is to fill the view
 * @property {(range: Range | null, isDone: boolean) => void} range
 * @property {() => void} moved                       the view has changed by hand
 * @property {(error: unknown) => void} failed        the server did not answer
 */
/**
 * @typedef {object} Names
 * @property {(row: Row) => [string, string]} row          its rank, and where that is
 * @property {(grouping: Grouping, group: number) => [string, string, string]} group  its name, its size, its busy share
 * @property {(step: number) => string} step
 */

/** Draws the tracks of one trace. */
export class TimelineView {
  /** @param {HTMLElement} frame @param {HTMLCanvasElement} canvas @param {TimelineEvents} events @param {Names} names */
  constructor(frame, canvas, events, names) {
    this.surface = new Surface(canvas, frame);
    this.events = events;
    this.names = names;
    /** @type {import("./tracks.js").Tracks | null} */
    this.tracks = null;
    /** @type {import("./timelinecolours.js").Colouring | null} */
    this.colouring = null;
    /** @type {Grouping | null} */
    this.grouping = null;
    /** @type {Set<number>} */
    this.folded = new Set();
    this.lines = new Lines([], null, this.folded, 0);
    this.time = new TimeWindow(1);
    this.pixels = new Pixels();
    this.byHand = false;
    this.scrolled = 0;
    /** The share of each row that is left free below its tracks, for a layer to fill. */
    this.foot = 0;
    this.selected = -1;
    this.hovered = -1;
    this.pinnedRank = -1;
    /** @type {import("./timelinelinks.js").Links | null} */
    this.links = null;
    /** @type {Range | null} */
    this.range = null;
    /** @type {import("./lit.js").Lit | null} */
    this.lit = null;
    /** @type {import("./scene.js").Kind[]} */
    this.kinds = [];
    /** @type {import("./timelinepaint.js").Layer[]} */
    this.layers = [paintChosen, paintArrows, paintRange];
    this.pointer = { x: -1, y: -1 };
    /** @type {{frames: number, spans: number, ms: number[]}} */
    this.drawn = { frames: 0, spans: 0, ms: [] };
    this.redraw = new Redraw(() => this._draw());
    this.loader = new Loader(() => this.redraw.request(), (error) => events.failed(error));
    listen(this.surface, {
      hover: (x, y) => this._hover(x, y),
      leave: () => this._hover(-1, -1),
      click: (x, y) => events.click(this.at(x, y)),
      double: () => events.fit(),
      drag: (dx, dy) => {
        this.pan(-dx / this._wide());
        this.scroll(-dy);
      },
      area: (x0, y0, x1, y1, isDone) => this._area(x0, y0, x1, y1, isDone),
      wheel: (x, _y, event) => this._wheel(x, event),
    });
    new ResizeObserver(() => {
      if (!this.surface.resize()) return;
      this._lay();
    }).observe(frame);
    onThemeChange(() => this.redraw.request());
  }

  /** Shows a trace. @param {import("./tracks.js").Tracks} tracks @param {number} trace its number */
  show(tracks, trace) {
    this.tracks = tracks;
    this.time = new TimeWindow(tracks.total);
    this.colouring = colouringOf(tracks, "");
    this.loader.start(tracks, trace);
    this.byHand = false;
    this.scrolled = 0;
    this.grouping = null;
    this.range = null;
    this.select(-1);
    this.hovered = -1;
    this._lay();
  }

  /** Sets what colours mean. @param {string} name */
  colour(name) {
    if (!this.tracks || this.colouring?.name === name) return;
    this.colouring = colouringOf(this.tracks, name);
    this.redraw.request();
  }

  /** Puts the rows under headings, or under none; `folded` groups show one line. @param {Grouping | null} grouping @param {Set<number>} folded */
  group(grouping, folded) {
    if (grouping === this.grouping && sameNumbers(folded, this.folded)) return;
    Object.assign(this, { grouping, folded });
    this._lay();
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
    const selected = this.tracks && span < this.tracks.length ? span : -1;
    if (selected !== this.selected) this.links = null;
    this.selected = selected;
    this.redraw.request();
  }

  /** Shows what belongs to the selected span. @param {import("./timelinelinks.js").Links | null} links */
  link(links) {
    this.links = links;
    this.redraw.request();
  }

  /** Sets the range; null for none. @param {Range | null} range */
  mark(range) {
    this.range = range;
    this.redraw.request();
  }

  /** Brings a span into view, once it is known. @param {number} id */
  reveal(id) {
    const span = this.tracks?.span(id);
    if (!span) return;
    this.time.reveal(span.start, span.end);
    this.revealRank(this.tracks?.rankOf(id) ?? -1);
  }

  /** Scrolls the line of a rank into view. @param {number} rank */
  revealRank(rank) {
    const line = this.lines.of(rank);
    if (!line) return;
    const shown = this.surface.height - AXIS;
    if (line.top < this.scrolled) this.scrolled = line.top;
    if (line.top + line.high > this.scrolled + shown) this.scrolled = line.top + line.high - shown;
    this.redraw.request();
  }

  /** Shows all of the trace. */
  fit() {
    this.time.fit();
    this.byHand = false;
    this.redraw.request();
    this.events.moved();
  }

  /** Shows the selected span and its surroundings, or the range. */
  centre() {
    const span = this.tracks?.span(this.selected) ?? this.range;
    if (!span) return this.fit();
    this._move(() => this.time.centre(span.start, span.end));
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

  /** Scrolls the lines by pixels. @param {number} pixels */
  scroll(pixels) {
    this.scrolled += pixels;
    this._keepRows();
    this.redraw.request();
  }

  get rowHeight() {
    return this.lines.rowHeight;
  }

  /** Returns what is under a point. @param {number} x @param {number} y @returns {Spot} */
  at(x, y) {
    const perPixel = this.time.span / this._wide();
    /** @type {Spot} */
    const none = { span: -1, rank: -1, track: -1, time: this._timeAt(x), slack: SLACK_PIXELS * perPixel, group: null };
    const line = this.tracks && y >= AXIS && x >= 0 ? this.lines.at(y - AXIS + this.scrolled) : null;
    if (!this.tracks || !line) return none;
    if (!line.row) return { ...none, group: line.group };
    const { row } = line;
    if (x < GUTTER) return { ...none, rank: row.rank };
    const within = (y - AXIS + this.scrolled - line.top) / line.high / (1 - this.foot);
    if (within > 1) return none;
    let lane = 0;
    while (lane + 1 < row.lanes && within > laneBox(lane + 1, row.lanes).top) lane++;
    const track = row.track + lane;
    const span = this.tracks.spanAt(track, none.time, none.slack);
    return { ...none, span, track, rank: span === -1 ? -1 : row.rank };
  }

  /** Returns the middle of a span's part in view, in pixels of the page; null when it is not. @param {number} id */
  where(id) {
    const { tracks, time } = this;
    const span = tracks?.span(id);
    if (!tracks || !span || span.end < time.start || span.start > time.end || !this.surface.width) return null;
    const box = boxOf({ ...this, tracks }, id);
    if (!box) return null;
    const { left, top } = this.surface.canvas.getBoundingClientRect();
    const from = Math.max(GUTTER, this._toPixel(span.start));
    const to = Math.min(this.surface.width, this._toPixel(span.end));
    return { x: left + (from + to) / 2, y: top + box.top + box.high / 2 };
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

  get isBusy() {
    return this.redraw.waiting || this.loader.isBusy;
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
    const spot = this.at(x, y);
    this.hovered = spot.span ?? -1;
    this.redraw.request();
    this.events.hover(spot);
  }

  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {boolean} isDone */
  _area(x0, y0, x1, y1, isDone) {
    if (!this.tracks) return;
    const [start, end] = [x0, x1].sort((one, other) => one - other).map((x) => Math.min(this.tracks?.total ?? 0, Math.max(0, this._timeAt(x))));
    const [top, bottom] = [y0, y1].sort((one, other) => one - other).map((y) => y - AXIS + this.scrolled);
    const ranks = this.lines.ranksBetween(top, bottom);
    this.mark(end > start && ranks.length ? { start, end, ranks } : null);
    this.events.range(this.range, isDone);
  }

  /** Ctrl zooms, Shift pans; else rows scroll, or the time zooms where all rows are in view. @param {number} x @param {WheelEvent} event */
  _wheel(x, event) {
    const overflows = this.lines.height > this.surface.height - AXIS;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!event.ctrlKey && sideways) this.pan(sideways / this._wide());
    else if (event.ctrlKey || !overflows) this._move(() => this.time.zoom(wheelZoom(event), this._share(x)));
    else this.scroll(event.deltaY);
  }

  /** @param {number} x */
  _timeAt(x) {
    return this.time.start + ((x - GUTTER) / this._wide()) * this.time.span;
  }

  /** @param {number} time */
  _toPixel(time) {
    return GUTTER + ((time - this.time.start) / this.time.span) * this._wide();
  }

  /** @param {number} x */
  _share(x) {
    return Math.min(1, Math.max(0, (x - GUTTER) / this._wide()));
  }

  _lay() {
    const shown = Math.max(0, this.surface.height - AXIS);
    this.lines = new Lines(this.tracks?.rows ?? [], this.grouping, this.folded, shown);
    this._keepRows();
    this.redraw.request();
  }

  _keepRows() {
    const most = Math.max(0, this.lines.height - (this.surface.height - AXIS));
    this.scrolled = Math.min(most, Math.max(0, this.scrolled));
  }

  _wide() {
    return Math.max(1, this.surface.width - GUTTER);
  }

  /** Returns what is in view, with as many rows again above and below. @returns {import("./timelineloader.js").Need} */
  _need() {
    const { lines, scrolled, time, tracks } = this;
    const shown = this.surface.height - AXIS;
    const { first, last } = lines.between(scrolled - shown / 2, scrolled + 1.5 * shown);
    const near = lines.lines.slice(first, last);
    const perPixel = time.span / (this._wide() * this.surface.density);
    return {
      from: Math.max(0, Math.min(time.start, tracks?.total ?? 0)),
      to: Math.max(0, Math.min(time.end, tracks?.total ?? 0)),
      bucket: 2 ** Math.max(0, Math.floor(Math.log2(perPixel))),
      tracks: near.flatMap(({ row }) => (row ? Array.from({ length: row.lanes }, (_, lane) => row.track + lane) : [])).sort((one, other) => one - other),
      groups: near.filter(({ row, folded }) => !row && folded).map(({ group }) => group),
      by: this.grouping?.by ?? "",
    };
  }

  _draw() {
    if (this.surface.resize()) this._lay();
    this._keepRows();
    const { tracks, colouring } = this;
    if (!tracks || !colouring || !this.surface.width) return;
    const before = performance.now();
    this.drawn.spans = paintTimeline({ ...this, tracks, colouring, surface: this.surface, theme: theme() });
    this.drawn.frames++;
    this.drawn.ms.push(performance.now() - before);
    if (this.drawn.ms.length > FRAMES_KEPT) this.drawn.ms.shift();
    this.loader.want(this._need(), colouring);
  }
}

/** @param {Set<number>} one @param {Set<number>} other */
function sameNumbers(one, other) {
  return one.size === other.size && [...one].every((each) => other.has(each));
}
