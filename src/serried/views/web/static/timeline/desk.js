// The desk of the timeline: what it asks of the server beside its windows, and what it tells the
// page.
//
//   rows under headings   trace/rows       what belongs to a span    trace/links
//   the span at a point   trace/span       where sheets hold shares only

import { say } from "../base/announcer.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { integers, readPayload } from "../base/payload.js";
import { askDocument, askPayload } from "../base/questions.js";
import { readRuns, runsText } from "./trace/runs.js";
import { groupName, rowName } from "./speech.js";
import { showBubble, showColours, showGroupings } from "./bar.js";
import { TimelineHover } from "./hover.js";
import { askLinks, askSpan } from "./trace/links.js";
import { rangeText, readRange } from "./trace/range.js";
import { TimelineView } from "./view.js";

/** @typedef {import("../desk/desk.js").Desk} Desk */
/** @typedef {import("./paint/spot.js").Spot} Spot */
/** @typedef {import("./trace/rows.js").Grouping} Grouping */
/** @typedef {import("./trace/range.js").Range} Range */

/** Holds the timeline together; the state is that of the page's desk. */
export class TimelineDesk {
  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk;
    /** Groupings of the trace in view that were asked for. @type {Map<string, Grouping>} */
    this.groupings = new Map();
    /** Called when the range has changed. @type {((range: Range | null) => void)[]} */
    this.onRange = [];
    this.asked = 0;
    this.linked = -1;
    /** Whether the trace in view has just been shown. */
    this.isFresh = true;
    this.linking = new AbortController();
    /** Kept once the keys pressed before have been answered. */
    this.stepped = Promise.resolve();
    this.view = new TimelineView(
      byId("timeline-frame"),
      /** @type {HTMLCanvasElement} */ (byId("timeline")),
      {
        hover: (spot) => this.hover.take(spot),
        click: (spot) => void this.while(this._click(spot)),
        fit: () => this.view.centre(),
        range: (range, isDone) => this._range(range, isDone),
        moved: () => desk.moved(),
        failed: (error) => desk.fail(error),
      },
      {
        row: (row) => rowName(row, desk.tracks),
        group: (grouping, group) => groupName(grouping, group),
        step: (step) => t("timeline.step", { step }),
      },
    );
    this.hover = new TimelineHover(this);
    document.addEventListener("spoken", () => this._retell());
    byId("timeline-by").addEventListener("change", (event) =>
      this.edit({ by: chosen(event), folded: "" }),
    );
    byId("timeline-colour").addEventListener("change", (event) =>
      this.edit({ colour: chosen(event) }),
    );
    byId("timeline-fold").addEventListener("click", () => this._foldAll());
  }

  get isBusy() {
    return this.asked > 0 || this.hover.isBusy || this.view.isBusy;
  }

  get trace() {
    return this.desk.offer ? this.desk.offers.indexOf(this.desk.offer) : 0;
  }

  /** Shows a trace that has just been sent. @param {import("./trace/tracks.js").Tracks} tracks */
  show(tracks) {
    this.groupings.clear();
    this.linked = -1;
    this.isFresh = true;
    this.view.show(tracks, this.trace);
    if (!tracks.statistics) void this.while(this._askBubble(tracks));
  }

  /** Shows what the state says of the timeline: rows, colours, range. */
  async take() {
    const { desk, view } = this;
    const { tracks, state } = desk;
    if (!tracks) return;
    await this._colour(tracks, state.colour);
    view.mark(readRange(state.range, tracks.job.world_size));
    for (const each of this.onRange) each(view.range);
    const by = tracks.groupings.includes(state.by) ? state.by : "";
    this._showChoices(tracks, by);
    const grouping = by ? (this.groupings.get(by) ?? (await this._askRows(tracks, by))) : null;
    if (this.desk.state.by !== state.by || tracks !== this.desk.tracks) return;
    view.group(grouping, new Set(readRuns(state.folded, grouping?.size.length ?? 0)));
  }

  /**
   * Shows what rows may stand under and what colours may mean.
   * @param {import("./trace/tracks.js").Tracks} tracks
   * @param {string} by
   */
  _showChoices(tracks, by) {
    showGroupings(tracks, by, this.desk.state.folded);
    showColours(tracks, this.view.colouring);
  }

  /** Says everything in another language; what was sent of the trace stays. */
  _retell() {
    const { tracks } = this.desk;
    if (!tracks) return;
    this._showChoices(tracks, this.view.grouping?.by ?? "");
    this.view.redraw.request();
  }

  /**
   * Changes the state of the timeline.
   * @param {Partial<import("../desk/state/fields.js").State>} change
   */
  edit(change) {
    this.desk.state = { ...this.desk.state, ...change };
    this.desk.address.step("");
    void this.while(this.take());
  }

  /** Selects a span, -1 for none, and asks what belongs to it. @param {number} span */
  select(span) {
    this.view.select(span);
    if (span < 0 || span === this.linked) {
      if (span < 0) this.linked = -1;
      return;
    }
    this.linked = span;
    void this.while(this._askLinks(span));
  }

  /**
   * Moves to another span, or centres the selected one; true when the key was taken.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const { tracks } = this.desk;
    if (!tracks) return false;
    const along = { ",": -1, ".": 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (along || across)
      this.stepped = this.stepped.then(() => this.while(this._step(along ?? 0, across ?? 0)));
    else if (event.key.toLowerCase() === "f") this.view.centre();
    else if (event.key.toLowerCase() === "n") this.desk.seeks.step(event.shiftKey ? -1 : 1);
    else return false;
    return true;
  }

  /** Takes the range away. */
  clear() {
    if (this.desk.state.range) this._range(null, true);
  }

  /** Counts a question as asked until it is answered. @param {Promise<void>} answer */
  async while(answer) {
    this.asked++;
    try {
      await answer;
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError")) this.desk.fail(error);
    } finally {
      this.asked--;
    }
  }

  /** @param {import("./trace/tracks.js").Tracks} tracks */
  async _askBubble(tracks) {
    const answer = await askDocument(`trace/bubble?trace=${this.trace}`);
    tracks.statistics = answer;
    if (tracks === this.desk.tracks) showBubble(tracks);
  }

  /**
   * Turns to a way to colour, once it is known what its classes mean.
   * @param {import("./trace/tracks.js").Tracks} tracks
   * @param {string} name
   */
  async _colour(tracks, name) {
    if (tracks.measured.includes(name) && !tracks.scales[name]) {
      try {
        const { edges } = await askDocument(
          `trace/scale?trace=${this.trace}&of=${encodeURIComponent(name)}`,
        );
        tracks.scales[name] = edges;
      } catch (error) {
        this.desk.fail(error);
        this.desk.state = { ...this.desk.state, colour: "" };
        this.view.colour("");
        return;
      }
    }
    if (tracks === this.desk.tracks && this.desk.state.colour === name) this.view.colour(name);
  }

  /** @param {import("./trace/tracks.js").Tracks} tracks @param {string} by */
  async _askRows(tracks, by) {
    const { header, columns } = readPayload(
      await askPayload(`trace/rows?trace=${this.trace}&by=${encodeURIComponent(by)}`),
    );
    const busy = /** @type {Float64Array} */ (columns.get("busy"));
    const grouping = {
      by,
      label: header.label,
      of: integers(columns, "of"),
      size: integers(columns, "size"),
      busy,
      hasRest: header.has_rest,
    };
    if (tracks === this.desk.tracks) this.groupings.set(by, grouping);
    return grouping;
  }

  /** @param {number} span */
  async _askLinks(span) {
    const { tracks } = this.desk;
    if (!tracks) return;
    this.linking.abort();
    this.linking = new AbortController();
    const links = await askLinks(tracks, this.trace, span, this.linking.signal);
    if (this.view.selected !== span || tracks !== this.desk.tracks) return;
    this.view.link(links);
    this.desk.shown();
    // An address names a span that may lie far below the first rows.
    if (this.isFresh) this.view.revealRank(tracks.rankOf(span));
    this.isFresh = false;
  }

  /** @param {number} along @param {number} across */
  async _step(along, across) {
    const { tracks } = this.desk;
    const { selected, lines } = this.view;
    if (!tracks?.length) return;
    let next = 0;
    if (selected >= 0 && along)
      next = await askSpan(tracks, { trace: this.trace, slice: selected, by: along });
    else if (selected >= 0) {
      const span = tracks.span(selected);
      const rank = tracks.rankOf(selected);
      const other = lines.beside(rank, across);
      const row = tracks.rows[tracks.rowOf(other)];
      const time = span ? (span.start + span.end) / 2 : 0;
      next =
        other === rank
          ? selected
          : await askSpan(tracks, {
              trace: this.trace,
              track: row.track,
              time: Math.round(time),
              slack: 0,
            });
    }
    if (next >= 0 && tracks === this.desk.tracks) this.desk.pinSpan(next, tracks.rankOf(next));
  }

  /** @param {Spot} spot */
  async _click(spot) {
    const { tracks } = this.desk;
    if (!tracks) return;
    if (spot.group !== null) return this._fold(spot.group);
    const span = spot.span ?? (await this.askAt(spot));
    this.desk.pinSpan(span, span < 0 ? (spot.track < 0 ? spot.rank : -1) : tracks.rankOf(span));
  }

  /**
   * Asks what is at a spot of which only shares are known.
   * @param {Spot} spot
   * @param {AbortSignal} [signal]
   */
  askAt(spot, signal) {
    const { tracks } = this.desk;
    if (!tracks) return Promise.resolve(-1);
    return askSpan(
      tracks,
      {
        trace: this.trace,
        track: spot.track,
        time: Math.round(spot.time),
        slack: Math.ceil(spot.slack),
      },
      signal,
    );
  }

  /** @param {number} group */
  _fold(group) {
    const { grouping, folded } = this.view;
    if (!grouping) return;
    const next = new Set(folded);
    if (!next.delete(group)) next.add(group);
    this.edit({ folded: runsText(next) });
    const [name] = groupName(grouping, group);
    say(t(next.has(group) ? "timeline.folded" : "timeline.unfolded", { group: name }));
  }

  /** Folds every group, or unfolds all where every one is folded. */
  _foldAll() {
    const { grouping, folded } = this.view;
    if (!grouping) return;
    const all = [...new Set(grouping.of)];
    this.edit({ folded: folded.size === all.length ? "" : runsText(all) });
  }

  /** @param {Range | null} range @param {boolean} isDone */
  _range(range, isDone) {
    this.view.mark(range);
    if (!isDone) return;
    this.desk.state = { ...this.desk.state, range: rangeText(range) };
    this.desk.address.writeSoon();
    for (const each of this.onRange) each(range);
  }
}

/** @param {Event} event */
function chosen(event) {
  return /** @type {HTMLSelectElement} */ (event.target).value;
}
