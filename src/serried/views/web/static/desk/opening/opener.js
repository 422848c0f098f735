// Opens anything: the server says what it is by its beginning, reads it, and the page turns to the
// tab that shows it. What was served is followed as what was dropped here is.

import { byId } from "../../base/dom.js";
import { language, t } from "../../base/i18n.js";
import { isReport } from "../../base/kept.js";
import { Refusal, ask, askDocument } from "../../base/questions.js";
import { DEFAULTS, withJob } from "../state/fields.js";
import { message, nameOf, sampled } from "../launch/gathered.js";
import { showReading, showSending, told } from "./strip.js";

/** @typedef {import("../launch/gathered.js").Gathered} Gathered */
/** @typedef {import("./strip.js").Opening} Opening */
/** @typedef {import("../state/fields.js").State} State */
/** @typedef {import("../../base/waiting.js").Waiting} Waiting */
/**
 * @typedef {object} Host  what opening asks of the page
 * @property {Waiting} waiting
 * @property {Promise<unknown>} opened  once the page shows what its address says
 * @property {Layout} layout
 * @property {{takeFiles(files: File[]): void, takeOpened(number: number): void}} launch
 * @property {Runs} runs
 * @property {{open(): Promise<unknown>, show(name: string): unknown, take(): unknown,
 *   cases: {name: string}[]}} diagnosis
 * @property {{open(name: any): unknown, met(): unknown}} tabs
 */
/**
 * @typedef {object} Layout
 * @property {(sentence: string) => unknown} complain
 * @property {(state: State) => unknown} edit
 * @property {{state: State}} store
 * @property {Waiting} waiting
 */
/**
 * @typedef {object} Runs
 * @property {Record<string, boolean>} named  what the address named
 * @property {() => Promise<unknown>} learn
 * @property {(trace: string) => Promise<unknown>} renew
 * @property {number} trace
 * @property {{name: string, has_evidence: boolean}[]} offers
 * @property {Checks} checks
 */
/**
 * @typedef {object} Checks
 * @property {() => Promise<unknown>} open
 * @property {any[]} offers
 * @property {(place: number) => string} heat
 */
/** @typedef {{kind: string, names: string[]}} Recognised */

const HEADERS = { "Content-Type": "application/octet-stream" };
const LAUNCH = ["launch", "hostfile"];

/** Opens what is given, and follows what is being opened. */
export class Opener {
  /** @param {Host} page */
  constructor(page) {
    this.page = page;
    /** Openings that were shown or told of. @type {Set<number>} */
    this.seen = new Set();
    /** Openings that were under way as the page opened. @type {Set<number>} */
    this.served = new Set();
    /** Runs that were diagnosed for this page, by number. @type {Set<number>} */
    this.diagnosed = new Set();
    /** Whether the page shows what it was opened for, so that others of these are put on offer. */
    this.isSettled = false;
    /** @type {Opening[]} */
    this.reading = [];
    /** @type {EventSource | null} */
    this.events = null;
    /**
     * What was heard last, so that an older answer never follows a newer one.
     * @type {Promise<void>}
     */
    this.heard = Promise.resolve();
    /** What sends files at the moment. @type {AbortController | null} */
    this.sending = null;
    byId("opening-cancel").addEventListener("click", () => this._cancel());
    document.addEventListener("spoken", () => this._showProgress());
  }

  /** Whether something is being sent, or read to be shown. */
  get isBusy() {
    return Boolean(this.sending || this.events);
  }

  /** Takes up what was served: shows it, or follows it where it is still being read. */
  async begin() {
    const { openings } = await askDocument("openings");
    const isNamed = Object.values(this.page.runs.named).some(Boolean);
    for (const opening of /** @type {Opening[]} */ (openings)) {
      if (opening.state === "reading") {
        this.served.add(opening.number);
        continue;
      }
      this.isSettled ||= opening.state === "done";
      this.seen.add(opening.number);
      // Runs, checks and diagnoses are on offer from the start, and shown as such.
      if (opening.state === "failed" && opening.tab !== "run") this._fail(opening);
      else if (!isNamed && opening.state === "done" && !isOnOffer(opening))
        await this._show(opening);
    }
    this.isSettled ||= isNamed;
    if (this.served.size) this._follow();
  }

  /** Opens files. @param {Gathered[] | Promise<Gathered[]>} given */
  take(given) {
    const { page } = this;
    void page.layout.waiting.until(page.opened.then(async () => this._take(await given)));
  }

  /** The runs that can be diagnosed and were not yet, by their numbers. */
  get undiagnosed() {
    const { runs, diagnosis } = this.page;
    const known = new Set(diagnosis.cases.map(({ name }) => name));
    return runs.offers.flatMap(({ has_evidence: can, name }, number) =>
      can && !this.diagnosed.has(number) && !known.has(name) && !isReport()
        ? [{ name, number }]
        : [],
    );
  }

  /**
   * Diagnoses a run, that in view if none is named, once; tells whether that was begun.
   * @param {number} [number]
   */
  diagnose(number = this.page.runs.trace) {
    const offer = this.page.runs.offers[number];
    if (!offer?.has_evidence || this.diagnosed.has(number) || isReport()) return false;
    this.diagnosed.add(number);
    const request = { method: "POST", headers: HEADERS, body: "" };
    const begun = ask(`openings/diagnose?trace=${number}&lang=${language()}`, request);
    void this.page.waiting.until(begun.then(() => this._follow()));
    return true;
  }

  /** @param {Gathered[]} files */
  async _take(files) {
    if (!files.length) return;
    const { layout, launch } = this.page;
    try {
      const found = await this._recognise(files);
      layout.complain("");
      if (LAUNCH.includes(found.kind)) return launch.takeFiles(files.map(({ file }) => file));
      await this._send(files.filter(({ path }) => found.names.includes(path)));
    } catch (error) {
      if (error instanceof Refusal) layout.complain(error.message);
      // A file that has gone, or may not be read: the browser tells no more than that.
      else if (error instanceof DOMException && error.name !== "AbortError")
        layout.complain(t("launch.unread"));
      else if (!(error instanceof DOMException)) layout.complain(t("error.server"));
    } finally {
      this._showProgress();
    }
  }

  /** @param {Gathered[]} files @returns {Promise<Recognised>} */
  async _recognise(files) {
    const body = /** @type {Uint8Array<ArrayBuffer>} */ (await sampled(files));
    const request = { method: "POST", headers: HEADERS, body };
    return (await ask(`recognise?lang=${language()}`, request)).json();
  }

  /** @param {Gathered[]} files */
  async _send(files) {
    const name = nameOf(files);
    this.sending = new AbortController();
    showSending(name);
    try {
      const { signal } = this.sending;
      const body = message(name, files);
      const request = { method: "POST", headers: HEADERS, body, signal };
      await ask(`open?lang=${language()}`, request);
    } finally {
      this.sending = null;
    }
    this._follow();
  }

  _follow() {
    this.events ??= this._listen();
  }

  _listen() {
    const events = new EventSource("api/openings/events");
    events.addEventListener("message", ({ data }) => {
      const { openings, reading } = JSON.parse(data);
      if (!reading) this._leave();
      const heard = this.heard.then(() => this._hear(openings));
      this.heard = heard.catch(() => {});
      void this.page.waiting.until(heard);
    });
    return events;
  }

  _leave() {
    this.events?.close();
    this.events = null;
  }

  /** @param {Opening[]} openings */
  async _hear(openings) {
    this.reading = openings.filter(({ state }) => state === "reading");
    this._showProgress();
    for (const opening of openings) {
      if (opening.state === "reading" || this.seen.has(opening.number)) continue;
      this.seen.add(opening.number);
      if (opening.state === "failed") this._fail(opening);
      if (opening.state === "done") await this._place(opening);
    }
  }

  /**
   * Shows what was opened, or puts it on offer beside what the page shows.
   * @param {Opening} opening
   */
  async _place(opening) {
    if (!this.served.has(opening.number)) return this._show(opening);
    const { isSettled } = this;
    this.isSettled = true;
    return isSettled ? this._offer(opening) : this._show(opening);
  }

  /** @param {Opening} opening */
  async _offer(opening) {
    const { diagnosis, runs, tabs } = this.page;
    if (opening.trace !== undefined) await runs.learn();
    if (opening.check !== undefined) await runs.checks.open();
    if (opening.case !== undefined) {
      await diagnosis.open();
      await diagnosis.take();
    }
    tabs.met();
  }

  /** @param {Opening} opening */
  _fail(opening) {
    this.page.layout.complain(told(opening.error));
  }

  /** Shows what was opened in its tab. @param {Opening} opening */
  async _show(opening) {
    const { diagnosis, launch, layout, runs, tabs } = this.page;
    const { state } = layout.store;
    if (opening.files.length) return launch.takeOpened(opening.number);
    if (opening.trace !== undefined) await runs.renew(String(opening.trace));
    if (opening.check !== undefined) {
      await runs.checks.open();
      const check = runs.checks.offers[opening.check];
      layout.edit({ ...withJob(state, check.question), heat: runs.checks.heat(opening.check) });
    }
    if (opening.case !== undefined) {
      await diagnosis.open();
      diagnosis.show(opening.case);
    }
    if (opening.question) layout.edit(asked(state, opening.question));
    tabs.open(opening.tab ?? "layout");
    tabs.met();
    return undefined;
  }

  _showProgress() {
    if (!this.sending) showReading(this.reading);
  }

  _cancel() {
    if (this.sending) return this.sending.abort();
    const [first] = this.reading;
    if (!first) return undefined;
    const request = { method: "POST", headers: HEADERS, body: "" };
    return this.page.waiting.until(ask(`openings/cancel?number=${first.number}`, request));
  }
}

/** Tells whether a page that opens finds it by itself. @param {Opening} opening */
function isOnOffer(opening) {
  return [opening.trace, opening.check, opening.case].some((place) => place !== undefined);
}

/**
 * Returns a state that asks as a document did: for its job where it says one, and its plan.
 * @param {import("../state/fields.js").State} state
 * @param {Record<string, string | string[]>} question
 */
function asked(state, question) {
  const known = Object.entries(question).filter(([name]) => name in DEFAULTS);
  const words = known.map(([name, word]) => [name, Array.isArray(word) ? word.join("\n") : word]);
  return {
    ...("world_size" in question ? withJob(state, question) : state),
    ...Object.fromEntries(words),
  };
}
