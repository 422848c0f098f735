// The desk of the timeline: its parts, the span that is selected, colours and range.

import { byId } from "../base/dom.js";
import { Waiting } from "../base/waiting.js";
import { showBubble, showColours, showTimelineBar } from "./bar.js";
import { Headings } from "./headings.js";
import { FindingsPanel } from "./findings.js";
import { FollowDesk } from "./follow.js";
import { TimelineHover } from "./hover.js";
import { LiveDesk } from "./live.js";
import { Minimap } from "./minimap.js";
import { GpusPanel, StretchPanel } from "./panels.js";
import { PlanDesk } from "./plan.js";
import { SeekDesk } from "./seek.js";
import { namesFor } from "./speech.js";
import { askBubble, askLinks, askPeriods, askScale, askSpan } from "./trace/answers.js";
import { rangeText, readRange } from "./trace/range.js";
import { TimelineView } from "./view.js";
import { WhyDesk } from "./why.js";

/** @typedef {import("./paint/spot.js").Spot} Spot */
/** @typedef {import("./state.js").Host} Host */
/** @typedef {import("./trace/range.js").Range} Range */
/** @typedef {import("./trace/tracks.js").Tracks} Tracks */

/** Holds the timeline together; the state is the page's. */
export class TimelineDesk {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.waiting = new Waiting((error) => {
      if (!(error instanceof DOMException && error.name === "AbortError")) host.fail(error);
    });
    this.linked = -1;
    /** Whether the trace in view has just been shown. */
    this.isFresh = true;
    this.linking = new AbortController();
    /** Kept once the keys pressed before have been answered. */
    this.stepped = Promise.resolve();
    this.view = new TimelineView(
      byId("timeline-frame"),
      /** @type {HTMLCanvasElement} */ (byId("timeline")),
      /** @type {HTMLCanvasElement} */ (byId("timeline-over")),
      {
        hover: (spot) => this.hover.take(spot),
        click: (spot) => void this.waiting.until(this._click(spot)),
        fit: () => this.view.centre(),
        range: (range, isDone) => this._range(range, isDone),
        moved: () => host.moved(),
        failed: (error) => host.fail(error),
      },
      namesFor(host),
    );
    this.headings = new Headings(host, this.view, (change) => this._edit(change));
    this.plan = new PlanDesk(host, this.view);
    this.follow = new FollowDesk(host, this.view);
    this.seek = new SeekDesk(host, this.view, this.follow);
    this.why = new WhyDesk(host);
    this.findings = new FindingsPanel(host, (shows) => this._go(shows));
    this.minimap = new Minimap(host, this.view);
    this.live = new LiveDesk(host, this.view);
    this.view.drawn = () => this.minimap.redraw.request();
    this.stretch = new StretchPanel(host, () => this._unmark());
    this.gpus = new GpusPanel(host);
    this.hover = new TimelineHover(host, this.view, this.plan, {
      at: (spot, signal) => this._askAt(spot, signal),
      waiting: this.waiting,
    });
    document.addEventListener("spoken", () => this._retell());
    byId("timeline-colour").addEventListener("change", (event) =>
      this._edit({ colour: /** @type {HTMLSelectElement} */ (event.target).value }),
    );
  }

  get isBusy() {
    const { waiting, hover, view, plan, seek, stretch, gpus, why, findings, minimap } = this;
    const parts = [waiting, hover, view, plan, seek, stretch, gpus, why, findings, minimap];
    return parts.some(({ isBusy }) => isBusy);
  }

  /** Shows a trace that has just been sent. @param {Tracks} tracks */
  show(tracks) {
    this.headings.clear();
    this.linked = -1;
    this.isFresh = true;
    this.view.show(tracks, this.host.trace);
    this.view.take(this.host.store.state.time);
    void this.gpus.take();
    void this.minimap.take(tracks);
    void this.findings.take();
    void this.waiting.until(this._askBubble(tracks));
    this.live.take();
  }

  /**
   * Shows a trace that has grown since it was sent: what is in view, selected and marked stays.
   * @param {Tracks} tracks
   */
  grow(tracks) {
    this.headings.clear();
    this.linked = -1;
    this.view.grow(tracks, this.host.trace);
    void this.minimap.take(tracks);
    void this.findings.take(true);
    void this.waiting.until(this._askBubble(tracks));
    this.live.take();
  }

  /**
   * Shows what is known of the trace above it.
   * @param {string[]} names   of all traces
   * @param {number} chosen    which of them it is
   * @param {boolean} isOwn    whether the map shows its layout
   */
  tell(names, chosen, isOwn) {
    const { tracks } = this.host;
    if (tracks) showTimelineBar(tracks, names, chosen, isOwn);
  }

  /** Shows what the state says of the timeline, the plan and the search. */
  take() {
    return Promise.all([this._take(), this.plan.take(), this.seek.take()]);
  }

  /** Selects a span, -1 for none, and asks what belongs to it. @param {number} span */
  select(span) {
    this.view.select(span);
    if (span < 0 || span === this.linked) {
      if (span < 0) this.linked = -1;
      return;
    }
    this.linked = span;
    void this.waiting.until(this._askLinks(span));
  }

  /**
   * Moves to another span, or centres the selected one; true when the key was taken.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (!this.host.tracks) return false;
    const along = { ",": -1, ".": 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const letter = event.key.toLowerCase();
    if (along || across) {
      const step = () => this.waiting.until(this._step(along ?? 0, across ?? 0));
      this.stepped = this.stepped.then(step);
    } else if (letter === "f") this.view.centre();
    else if (event.key === "[" || event.key === "]") this.follow.along(event.key === "]" ? 1 : -1);
    else if (letter === "n") this.seek.step(event.shiftKey ? -1 : 1);
    else return false;
    return true;
  }

  /** Takes the range and the search away. */
  clear() {
    this._unmark();
    this.follow.clear();
    this.seek.clear();
  }

  /** Adds to the panel of the selected span what else is known of it. @param {number} span */
  explain(span) {
    this.follow.offer(span);
    void this.why.show(span);
    void this.plan.show(span);
  }

  /** Shows what the state says of rows, colours and range. */
  async _take() {
    const { host, view } = this;
    const { tracks } = host;
    if (!tracks) return;
    const { colour, range } = host.store.state;
    await this._colour(tracks, colour);
    view.mark(readRange(range, tracks.job.world_size));
    void this.stretch.take(view.range);
    showColours(tracks, view.colouring);
    await this.headings.take(tracks);
  }

  /** Says everything in another language; what was sent of the trace stays. */
  _retell() {
    const { tracks } = this.host;
    if (!tracks) return;
    this.headings.offer(tracks, this.view.grouping?.by ?? "");
    showColours(tracks, this.view.colouring);
    this.view.redraw.request();
  }

  /** @param {Partial<import("./state.js").TimelineState>} change */
  _edit(change) {
    this.host.store.step(change);
    void this.waiting.until(this._take());
  }

  _unmark() {
    if (this.host.store.state.range) this._range(null, true);
  }

  /** Asks for the bubble, where it did not come along, or for the period. @param {Tracks} tracks */
  async _askBubble(tracks) {
    const { trace } = this.host;
    tracks.statistics ??= await askBubble(trace);
    if (!tracks.statistics.pipeline) tracks.periods ??= await askPeriods(trace);
    if (tracks === this.host.tracks) showBubble(tracks);
  }

  /**
   * Turns to a way to colour, once it is known what its classes mean.
   * @param {Tracks} tracks
   * @param {string} name
   */
  async _colour(tracks, name) {
    const { host, view } = this;
    if (tracks.measured.includes(name) && !tracks.scales[name]) {
      try {
        tracks.scales[name] = await askScale(host.trace, name);
      } catch (error) {
        host.fail(error);
        host.store.set({ colour: "" });
        view.colour("");
        return;
      }
    }
    if (tracks === host.tracks && host.store.state.colour === name) view.colour(name);
  }

  /** @param {number} span */
  async _askLinks(span) {
    const { host, view } = this;
    const { tracks } = host;
    if (!tracks) return;
    this.linking.abort();
    this.linking = new AbortController();
    const links = await askLinks(tracks, host.trace, span, this.linking.signal);
    if (view.selected !== span || tracks !== host.tracks) return;
    view.link(links);
    this.follow.link();
    host.shown();
    // An address names a span that may lie far below the first rows.
    if (this.isFresh) view.revealRank(tracks.rankOf(span));
    this.isFresh = false;
  }

  /** @param {number} along @param {number} across */
  async _step(along, across) {
    const { tracks } = this.host;
    const { selected } = this.view;
    if (!tracks?.length) return;
    let next = 0;
    if (selected >= 0) {
      next = along
        ? await this._askSpan(tracks, { slice: selected, by: along })
        : await this._across(tracks, selected, across);
    }
    if (next >= 0 && tracks === this.host.tracks) this.host.pin(next, tracks.rankOf(next));
  }

  /**
   * Asks for the span that ran on a neighbouring line in the middle of another.
   * @param {Tracks} tracks
   * @param {number} selected
   * @param {number} by
   */
  async _across(tracks, selected, by) {
    const span = tracks.span(selected);
    const rank = tracks.rankOf(selected);
    const other = this.view.lines.beside(rank, by);
    if (other === rank) return selected;
    const { track } = tracks.rows[tracks.rowOf(other)];
    const time = span ? Math.round((span.start + span.end) / 2) : 0;
    return this._askSpan(tracks, { track, time, slack: 0 });
  }

  /** Shows where a finding is. @param {import("./findings.js").Shows} shows */
  _go({ rank, slice, from_ns: from, to_ns: to, heat }) {
    if (heat) this.host.warm(heat);
    if (rank === undefined) return;
    this.host.pin(slice ?? -1, rank);
    // What is told of it, above and beside, takes room that rows had.
    requestAnimationFrame(() => this.view.revealRank(rank));
    if (from === undefined || to === undefined) return;
    this._range({ start: from, end: to, ranks: [rank] }, true);
    this.view.stretch(from, to, 2.5);
  }

  /** @param {Spot} spot */
  async _click(spot) {
    const { tracks } = this.host;
    if (!tracks) return;
    if (spot.group !== null) return this.headings.fold(spot.group);
    const span = spot.span ?? (await this._askAt(spot));
    const rank = spot.track < 0 ? spot.rank : -1;
    this.host.pin(span, span < 0 ? rank : tracks.rankOf(span));
  }

  /**
   * Asks what is at a spot of which only shares are known.
   * @param {Spot} spot
   * @param {AbortSignal} [signal]
   */
  async _askAt({ track, time, slack }, signal) {
    const { tracks } = this.host;
    if (!tracks) return -1;
    const near = { track, time: Math.round(time), slack: Math.ceil(slack) };
    return this._askSpan(tracks, near, signal);
  }

  /**
   * @param {Tracks} tracks
   * @param {Record<string, number>} words
   * @param {AbortSignal} [signal]
   */
  _askSpan(tracks, words, signal) {
    return askSpan(tracks, this.host.trace, words, signal);
  }

  /** @param {Range | null} range @param {boolean} isDone */
  _range(range, isDone) {
    this.view.mark(range);
    if (!isDone) return;
    this.host.store.soon({ range: rangeText(range) });
    void this.stretch.take(range);
  }
}
