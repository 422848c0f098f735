// A run that is still being written: new steps appear as ranks finish them, and the view stays at
// the end while it follows.

import { byId, make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { askDocument } from "../base/questions.js";
import { showWarnings } from "./bar.js";

/**
 * @typedef {object} Growth  serried.trace-growth/1
 * @property {"still" | "growing" | "ended" | "gone"} state
 * @property {number} revision  how often it was read again
 * @property {Record<string, string> | null} note
 */

const ASK_MS = 2000;
/** After so many answers without anything new it is asked less often. */
const PATIENT = 30;
const RARELY_MS = 20_000;

/** Asks whether the trace in view has grown, while somebody looks at it. */
export class LiveDesk {
  /**
   * @param {import("./state.js").Host} host
   * @param {import("./view.js").TimelineView} view
   */
  constructor(host, view) {
    this.host = host;
    this.view = view;
    /** @type {Growth | null} */
    this.growth = null;
    this.trace = "";
    this.quiet = 0;
    /** @type {number | null} */
    this.timer = null;
    this.button = make("button", { type: "button", id: "timeline-live", hidden: true });
    this.note = make("span", { id: "timeline-live-note", role: "status", hidden: true });
    byId("timeline-fit").before(this.button);
    byId("bubble").after(this.note);
    this.button.addEventListener("click", () => {
      host.store.step({ live: host.store.state.live ? "" : "1" });
      this._show();
      if (host.store.state.live) this.toEnd();
    });
    document.addEventListener("spoken", () => this._show());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.timer === null && this.isWorthAsking) this._later(0);
    });
  }

  /** Whether the trace may still grow. */
  get isWorthAsking() {
    const { host, growth } = this;
    return Boolean(host.trace && !host.tracks?.isPlanned && growth?.state !== "still");
  }

  /** Takes the trace in view, which may be one that was just asked for again. */
  take() {
    const { trace, tracks } = this.host;
    if (trace !== this.trace) {
      Object.assign(this, { trace, growth: null, quiet: 0 });
      if (tracks && !tracks.isPlanned) this._later(0);
    }
    this._show();
    // What comes last is read once the run has ended.
    const isGrown = this.growth?.state === "growing" || this.growth?.state === "ended";
    if (this.host.store.state.live && isGrown) this.toEnd();
  }

  /** Moves the view to the newest steps, as wide as it is. */
  toEnd() {
    const { tracks } = this.host;
    if (!tracks) return;
    const { span } = this.view.time;
    this.view.stretch(tracks.total - 0.97 * span, tracks.total + 0.03 * span);
  }

  /** @param {number} ms */
  _later(ms) {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this._ask(), ms);
  }

  async _ask() {
    this.timer = null;
    const { host, trace } = this;
    if (document.hidden || trace !== host.trace) return;
    try {
      /** @type {Growth} */
      const growth = await askDocument(`trace/growth?trace=${trace}`);
      if (trace !== host.trace) return;
      const before = this.growth?.revision ?? 0;
      this.growth = growth;
      this.quiet = growth.revision > before ? 0 : this.quiet + 1;
      if (growth.revision > before) await host.refresh();
      this._show();
      if (growth.state === "growing" || growth.state === "gone")
        this._later(this.quiet < PATIENT ? ASK_MS : RARELY_MS);
    } catch {
      // A server that does not answer may do so again; that it does not is said here.
      this.quiet++;
      this.growth = { state: "growing", revision: this.growth?.revision ?? 0, note: null };
      this.note.textContent = t("live.silent");
      this.note.hidden = false;
      this._later(RARELY_MS);
    }
  }

  _show() {
    const { growth, button, note } = this;
    const isLive = growth?.state === "growing";
    const { tracks } = this.host;
    // That files have no end is what the note says of all of them.
    if (tracks) showWarnings(tracks, isLive);
    button.hidden = !isLive;
    button.textContent = t("live.follow");
    button.title = t("live.title");
    button.setAttribute("aria-pressed", String(Boolean(this.host.store.state.live)));
    note.textContent = growth?.note?.[language()] ?? (isLive ? t("live.growing") : "");
    note.classList.toggle("silent", Boolean(growth?.note));
    note.hidden = !note.textContent;
  }
}
