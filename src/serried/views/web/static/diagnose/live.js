// A diagnosis whose evidence may still change: from when it is, and a fresh one once it is there.

import { make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { isReport } from "../base/kept.js";

/**
 * @typedef {object} CaseGrowth  serried.case-growth/1
 * @property {"followed" | "still"} state
 * @property {number} revision        how often its evidence told something else
 * @property {number | null} read_at  in seconds since 1970
 * @property {Record<string, string> | null} note
 */
/** @typedef {import("./found.js").Case} Case */
/**
 * @typedef {object} LiveHost
 * @property {(shown: Case) => number} numberOf  the number of a diagnosis, -1 for the example
 * @property {() => Promise<unknown>} renew      asks for the diagnoses again, and shows what is new
 */

/** Listens to the server while a diagnosis is looked at whose evidence may change. */
export class LiveCase {
  /** @param {LiveHost} host */
  constructor(host) {
    this.host = host;
    /** @type {Case | null} */
    this.shown = null;
    /** @type {CaseGrowth | null} */
    this.growth = null;
    /** @type {EventSource | null} */
    this.events = null;
    /** Whether the server does not answer at the moment. */
    this.isSilent = false;
    /** What says it; the time alone is not read out. */
    this.line = make("span", { id: "diagnose-live", "aria-live": "off", hidden: true });
    document.addEventListener("visibilitychange", () => this._listen());
  }

  /** Takes the diagnosis in view. @param {Case | null} shown */
  take(shown) {
    if (shown?.name !== this.shown?.name) {
      this._leave();
      this.growth = null;
    }
    this.shown = shown;
    this._listen();
    this.show();
  }

  /** Says from when the diagnosis is, and whether it is followed. */
  show() {
    const { growth, shown, isSilent } = this;
    const { line } = this;
    const at = growth?.read_at ?? shown?.read_at;
    const note = isSilent ? t("live.silent") : (growth?.note?.[language()] ?? "");
    line.hidden = !at;
    line.classList.toggle("silent", Boolean(note));
    if (!at) return;
    const told = t(this.events ? "diagnose.as_of_live" : "diagnose.as_of", { time: clock(at) });
    line.textContent = note ? `${told} ${note}` : told;
  }

  _listen() {
    const { shown } = this;
    const number = shown ? this.host.numberOf(shown) : -1;
    const isWanted = shown?.is_followed && number >= 0 && !document.hidden && !isReport();
    if (!isWanted) return this._leave();
    if (this.events) return undefined;
    this.events = new EventSource(`api/cases/events?case=${number}`);
    this.events.addEventListener("message", ({ data }) => void this._hear(JSON.parse(data)));
    // A browser asks again by itself; that nothing comes in between is said.
    this.events.addEventListener("error", () => {
      this.isSilent = true;
      this.show();
    });
    return undefined;
  }

  /** @param {CaseGrowth} growth */
  async _hear(growth) {
    const { shown } = this;
    this.growth = growth;
    this.isSilent = false;
    if (growth.state === "still") this._leave();
    if (shown && growth.revision !== shown.revision) await this.host.renew();
    this.show();
  }

  _leave() {
    this.events?.close();
    this.events = null;
    this.isSilent = false;
  }
}

/** Writes a moment of today by its time alone. @param {number} at  in seconds since 1970 */
function clock(at) {
  const moment = new Date(at * 1000);
  const isToday = moment.toDateString() === new Date().toDateString();
  const day = isToday ? undefined : "short";
  const lang = language() === "zh" ? "zh-CN" : "en-GB";
  return new Intl.DateTimeFormat(lang, { dateStyle: day, timeStyle: "medium" }).format(moment);
}
