// The search of the timeline: how many spans it finds, the one it stands on, and the veil over the
// rest.

import { say } from "../base/announcer.js";
import { byId } from "../base/dom.js";
import { counted, number, t } from "../base/i18n.js";
import { Refusal, askDocument } from "../base/questions.js";
import { isRowWanted, readSeek, seekWords, spanTest } from "../base/seek.js";
import { paintVeil } from "./paint/veil.js";
import { askSpan } from "./trace/answers.js";

/**
 * @typedef {object} Found
 * @property {number} count
 * @property {number} place
 * @property {number} id
 * @property {number} ranks
 * @property {{rank: number, action: string}} span
 */

/** Holds the search in view; the state is the page's. */
export class SeekDesk {
  /**
   * @param {import("./state.js").Host} host
   * @param {import("./view.js").TimelineView} view
   * @param {import("./follow.js").FollowDesk} follow
   */
  constructor(host, view, follow) {
    this.host = host;
    this.view = view;
    this.follow = follow;
    this.box = /** @type {HTMLInputElement} */ (byId("timeline-search"));
    /** @type {import("../base/seek.js").Wanted | null} */
    this.wanted = null;
    /** @type {Found | null} */
    this.found = null;
    /** What was asked last: trace and words. */
    this.newest = "";
    this.asked = 0;
    /** Kept once the moves asked for before are made. */
    this.moved = Promise.resolve();
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this._enter(event.shiftKey ? -1 : 1);
      if (!follow.isShown || !"[]".includes(event.key)) return;
      // These mean nothing to a search.
      event.preventDefault();
      follow.along(event.key === "]" ? 1 : -1);
    });
    this.box.addEventListener("search", () => void (this.box.value || this.clear()));
    byId("timeline-next").addEventListener("click", () => this.step(1));
    byId("timeline-previous").addEventListener("click", () => this.step(-1));
    view.layers.unshift((picture, context) => {
      const { wanted } = this;
      const { tracks } = picture;
      if (!wanted || follow.isShown) return;
      const isWanted = spanTest(wanted, [...tracks.actions.values()], tracks.names);
      paintVeil(picture, context, (row) => isRowWanted(wanted, row), isWanted);
    });
    document.addEventListener("spoken", () => this._show());
  }

  get isBusy() {
    return this.asked > 0;
  }

  /** Puts the cursor into the box. */
  enter() {
    this.box.select();
  }

  /** Goes to another span that was found. @param {number} by */
  step(by) {
    if (!this.wanted) return;
    this.moved = this.moved.then(() =>
      this._ask(
        this.found && this.found.count
          ? { place: (this.found.place + by + this.found.count) % this.found.count }
          : {},
        true,
      ),
    );
  }

  /** Ends the search. */
  clear() {
    this.box.value = "";
    this.box.removeAttribute("aria-invalid");
    if (document.activeElement === this.box)
      this.view.surface.canvas.focus({ preventScroll: true });
    if (!this.host.store.state.seek) return;
    this.host.store.soon({ seek: "" });
    void this.take();
  }

  /** Shows what the state searches for, without moving the view. */
  async take() {
    const { store, tracks } = this.host;
    if (!tracks) return;
    if (document.activeElement !== this.box) this.box.value = store.state.seek;
    this.wanted = store.state.seek
      ? readSeek(
          store.state.seek,
          [...tracks.actions.values()].map(({ name }) => name),
        )
      : null;
    this.found = null;
    if (this.wanted) await this._ask({}, false);
    else this.newest = "";
    this._show();
  }

  /** @param {number} by */
  _enter(by) {
    const { store } = this.host;
    const text = this.box.value.trim();
    if (text === store.state.seek && this.wanted) return this.step(by);
    store.step({ seek: text }, "timeline-search");
    this.moved = this.moved.then(async () => {
      await this.take();
      if (this.found?.count) {
        await this._go(this.found);
        // One microbatch of one step is what was meant, of the hundreds of spans of its number.
        if (this.wanted?.microbatch !== null) this.follow.start();
      } else if (text) say(this._count());
    });
  }

  /** @param {{place?: number}} words @param {boolean} isMove */
  async _ask(words, isMove) {
    const { host, view, wanted } = this;
    if (!wanted) return;
    const { trace } = host;
    const more =
      "place" in words
        ? `&place=${words.place}`
        : `&after=${Math.max(0, Math.round(view.time.start))}`;
    const asked = `trace/found?trace=${trace}&${seekWords(wanted)}${more}`;
    this.newest = asked;
    this.asked++;
    try {
      /** @type {Found} */
      const found = await askDocument(asked);
      if (this.newest !== asked) return;
      this.found = found;
      if (isMove && found.count) await this._go(found);
    } catch (error) {
      if (!(error instanceof Refusal)) return host.fail(error);
      this.found = null;
    } finally {
      this.asked--;
    }
    this._show();
  }

  /** Selects what was found and brings it into view. @param {Found} found */
  async _go({ id }) {
    const { host } = this;
    const { tracks } = host;
    if (!tracks) return;
    if (!tracks.span(id)) await askSpan(tracks, host.trace, { slice: id, by: 0 });
    if (tracks === host.tracks) host.pin(id, tracks.rankOf(id));
  }

  _show() {
    const { found, view, wanted } = this;
    const { seek } = this.host.store.state;
    byId("timeline-count").textContent = seek ? this._count() : "";
    this.box.toggleAttribute("aria-invalid", Boolean(seek) && (!wanted || found?.count === 0));
    const isAlone = !found || found.count < 2;
    for (const id of ["timeline-next", "timeline-previous"]) byId(id).hidden = isAlone;
    view.redraw.request();
  }

  _count() {
    const { found, wanted } = this;
    if (!wanted) return t("seek.unread");
    if (!found) return "";
    if (!found.count) return t("seek.none");
    return t("seek.found", {
      place: number(found.place + 1),
      count: number(found.count),
      ranks: counted("unit.ranks", found.ranks),
    });
  }
}
