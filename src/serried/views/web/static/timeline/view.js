// The timeline: its view of a trace, what the pointer and the keys do to it.
//
// What others may add: `layers` are painted over the tracks, in their order; `lights` on a canvas
// above, which alone is drawn anew while the pointer moves; `range` is what was drawn with Shift
// held; a colouring is a class of colour for each span (trace/colours.js).

import { listen } from "../base/canvas/gestures.js";
import { Pixels } from "../base/canvas/pixels.js";
import { Redraw, Surface } from "../base/canvas/surface.js";
import { TimeView } from "../base/canvas/view.js";
import { theme } from "../base/theme.js";
import { paintArrows, paintChosen, paintHovered, paintRange } from "./paint/layers.js";
import { paintTimeline } from "./paint/lines.js";
import { paintLit } from "./paint/lit.js";
import { AXIS, GUTTER } from "./paint/picture.js";
import { spotAt, spotOfSpan } from "./paint/spot.js";
import { colouringOf } from "./trace/colours.js";
import { Loader } from "./trace/loader.js";
import { Lines } from "./trace/rows.js";

/** @typedef {import("./trace/tracks.js").Row} Row */
/** @typedef {import("./trace/rows.js").Grouping} Grouping */
/** @typedef {import("./trace/range.js").Range} Range */
/** @typedef {import("./paint/spot.js").Spot} Spot */
/**
 * @typedef {object} TimelineEvents
 * @property {(spot: Spot) => void} hover
 * @property {(spot: Spot) => void} click
 * @property {() => void} fit                         a double click: the selected span is to fill
 *   the view
 * @property {(range: Range | null, isDone: boolean) => void} range
 * @property {() => void} moved                       the view has changed by hand
 * @property {(error: unknown) => void} failed        the server did not answer
 */
/** @typedef {import("./paint/picture.js").Names} Names */

const HOME_ROOM = 1.06;

/** Draws the tracks of one trace. */
export class TimelineView extends TimeView {
  /**
   * @param {HTMLElement} frame
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLCanvasElement} over
   * @param {TimelineEvents} events
   * @param {Names} names
   */
  constructor(frame, canvas, over, events, names) {
    super(new Surface(canvas, frame), GUTTER, {
      draw: () => this._draw(),
      moved: () => events.moved(),
      scroll: (pixels) => this.scroll(pixels),
      overflows: () => this.lines.height > this.surface.height - AXIS,
    });
    this.above = new Surface(over, frame);
    this.relight = new Redraw(() => this._drawLit());
    this.events = events;
    this.names = names;
    /** @type {import("./trace/tracks.js").Tracks | null} */
    this.tracks = null;
    /** @type {import("./trace/sheet.js").Colouring | null} */
    this.colouring = null;
    /** @type {Grouping | null} */
    this.grouping = null;
    /** @type {Set<number>} */
    this.folded = new Set();
    this.lines = new Lines([], null, this.folded, 0);
    this.pixels = new Pixels();
    this.scrolled = 0;
    /** What is in view where an address says nothing; null for all there is. */
    this.home = /** @type {{start: number, end: number} | null} */ (null);
    /** The share of each row that is left free below its tracks, for a layer to fill. */
    this.foot = 0;
    this.selected = -1;
    this.hovered = -1;
    this.pinnedRank = -1;
    /** @type {import("./trace/answers.js").Links | null} */
    this.links = null;
    /** @type {Range | null} */
    this.range = null;
    /** @type {import("../base/lit.js").Lit | null} */
    this.lit = null;
    /** @type {import("../base/scene.js").Kind[]} */
    this.kinds = [];
    /** @type {import("./paint/picture.js").Layer[]} */
    this.layers = [paintChosen, paintArrows, paintRange];
    /** @type {import("./paint/picture.js").Layer[]} */
    this.lights = [paintHovered];
    /** Called once it is drawn. @type {() => void} */
    this.drawn = () => {};
    /** How many spans were drawn one by one. */
    this.drawnSpans = 0;
    this.loader = new Loader(
      () => this.redraw.request(),
      (error) => events.failed(error),
    );
    listen(this.surface, {
      hover: (x, y) => this._hover(x, y),
      leave: () => this._hover(-1, -1),
      click: (x, y) => events.click(this.at(x, y)),
      double: () => events.fit(),
      drag: (dx, dy) => this.drag(dx, dy),
      area: (x0, y0, x1, y1, isDone) => this._area(x0, y0, x1, y1, isDone),
      wheel: (x, _y, event) => this.wheel(x, event),
    });
    new ResizeObserver(() => {
      if (!this._resize(this._chosen)) return;
      this._lay();
      // A canvas of another size is blank: it is drawn before it is seen.
      this._timed();
    }).observe(frame);
  }

  /**
   * Shows a trace.
   * @param {import("./trace/tracks.js").Tracks} tracks
   * @param {string} trace what names it in a question
   */
  show(tracks, trace) {
    this.tracks = tracks;
    this.last(tracks.total);
    const { middle, steps } = tracks;
    this.home = middle < 0 ? null : { start: steps.start[middle], end: steps.end[middle] };
    this.colouring = colouringOf(tracks, "");
    this.loader.start(tracks, trace);
    this.byHand = false;
    this._rest();
    this.scrolled = 0;
    this.grouping = null;
    this.range = null;
    this.select(-1);
    this.hovered = -1;
    this._lay();
  }

  /** Shows all there is. */
  fit() {
    if (!this.home) return super.fit();
    this._move(() => this.time.fit());
  }

  /** Shows what is in view where an address says nothing. */
  goHome() {
    this.byHand = false;
    this._rest();
    this.redraw.request();
    this.moves.moved();
  }

  /**
   * Shows a stretch of time, with some room around it.
   * @param {number} start
   * @param {number} end
   * @param {number} [room]  how many times as much as it is in view
   */
  stretch(start, end, room = 1) {
    this._move(() => this.time.centre(start, end, room));
  }

  /**
   * Shows a trace that has grown since it was sent, at the moments that are in view.
   * @param {import("./trace/tracks.js").Tracks} tracks
   * @param {string} trace
   */
  grow(tracks, trace) {
    const { byHand, home, time, scrolled, range } = this;
    this.show(tracks, trace);
    Object.assign(this, { byHand, home, scrolled, range });
    if (byHand || home) this.time.take(String(time));
    this._lay();
  }

  /** Sets what colours mean. @param {string} name */
  colour(name) {
    if (!this.tracks || this.colouring?.name === name) return;
    this.colouring = colouringOf(this.tracks, name);
    this.redraw.request();
  }

  /**
   * Puts the rows under headings, or under none; `folded` groups show one line.
   * @param {Grouping | null} grouping
   * @param {Set<number>} folded
   */
  group(grouping, folded) {
    if (grouping === this.grouping && sameNumbers(folded, this.folded)) return;
    Object.assign(this, { grouping, folded });
    this._lay();
  }

  /**
   * Shows what is lit and pinned elsewhere.
   * @param {import("../base/lit.js").Lit | null} lit
   * @param {import("../base/scene.js").Kind[]} kinds
   * @param {number} pinnedRank
   */
  light(lit, kinds, pinnedRank) {
    Object.assign(this, { lit, kinds, pinnedRank });
    if (this.tracks) this.relight.request();
  }

  /** Selects a span, -1 for none. @param {number} span */
  select(span) {
    const selected = this.tracks && span < this.tracks.length ? span : -1;
    if (selected !== this.selected) this.links = null;
    this.selected = selected;
    this.redraw.request();
  }

  /**
   * Shows what belongs to the selected span.
   * @param {import("./trace/answers.js").Links | null} links
   */
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

  /** Shows the selected span and its surroundings, or the range. */
  centre() {
    const span = this.tracks?.span(this.selected) ?? this.range;
    if (!span) return this.fit();
    this._move(() => this.time.centre(span.start, span.end));
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
    return spotAt(this, x, y);
  }

  /**
   * Returns the middle of a span's part in view, in pixels of the page; null when it is not.
   * @param {number} id
   */
  where(id) {
    return spotOfSpan(this, id);
  }

  get _chosen() {
    return this.tracks?.span(this.selected);
  }

  get isBusy() {
    return this.redraw.waiting || this.relight.waiting || this.loader.isBusy;
  }

  _rest() {
    this.time.fit();
    if (this.home) this.time.centre(this.home.start, this.home.end, HOME_ROOM);
  }

  /** Nothing moves where there is no trace. @param {() => void} move */
  _move(move) {
    if (this.tracks) super._move(move);
  }

  /** @param {number} x @param {number} y */
  _hover(x, y) {
    this.pointer = { x, y };
    const spot = this.at(x, y);
    this.hovered = spot.span ?? -1;
    this.relight.request();
    this.events.hover(spot);
  }

  /**
   * @param {number} x0
   * @param {number} y0
   * @param {number} x1
   * @param {number} y1
   * @param {boolean} isDone
   */
  _area(x0, y0, x1, y1, isDone) {
    if (!this.tracks) return;
    const [start, end] = [x0, x1]
      .sort((one, other) => one - other)
      .map((x) => Math.min(this.tracks?.total ?? 0, Math.max(0, this.timeAt(x))));
    const [top, bottom] = [y0, y1]
      .sort((one, other) => one - other)
      .map((y) => y - AXIS + this.scrolled);
    const ranks = this.lines.ranksBetween(top, bottom);
    this.mark(end > start && ranks.length ? { start, end, ranks } : null);
    this.events.range(this.range, isDone);
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

  /**
   * Returns what is in view, with as many rows again above and below.
   * @returns {import("./trace/loader.js").Need}
   */
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
      tracks: near
        .flatMap(({ row }) =>
          row ? Array.from({ length: row.lanes }, (_, lane) => row.track + lane) : [],
        )
        .sort((one, other) => one - other),
      groups: near.filter(({ row, folded }) => !row && folded).map(({ group }) => group),
      by: this.grouping?.by ?? "",
    };
  }

  _draw() {
    if (this._resize(this._chosen)) this._lay();
    this._keepRows();
    const { tracks, colouring } = this;
    if (!tracks || !colouring || !this.surface.width) return;
    this.drawnSpans = paintTimeline({
      ...this,
      tracks,
      colouring,
      surface: this.surface,
      theme: theme(),
    });
    this._drawLit();
    this.loader.want(this._need(), colouring);
    this.drawn();
  }

  /** Draws what is lit and pointed at, and nothing else. */
  _drawLit() {
    const { above, colouring, hovered, lit, pinnedRank, tracks } = this;
    above.resize();
    if (!tracks || !colouring || !above.width || (!lit && hovered < 0 && pinnedRank < 0))
      return above.wipe();
    return paintLit({ ...this, tracks, colouring, surface: above, theme: theme() });
  }
}

/** @param {Set<number>} one @param {Set<number>} other */
function sameNumbers(one, other) {
  return one.size === other.size && [...one].every((each) => other.has(each));
}
