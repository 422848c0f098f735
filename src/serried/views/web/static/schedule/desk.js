// The desk of the Schedule view: it asks for each schedule, keeps the last that could be, and
// shows.

import { announce, say } from "../base/announcer.js";
import { byId, copyText } from "../base/dom.js";
import { chosenLanguage, language, t } from "../base/i18n.js";
import { Refusal, askDocument, askPayload } from "../base/questions.js";
import { listenToScheduleForm, showFaults, showScheduleForm } from "./form.js";
import { placeHeads, showHeads } from "./head.js";
import { showList } from "./list.js";
import { blockTitle, measuredName, measuredQuestion, readMeasured } from "./measured.js";
import { ScheduleSeek } from "./seek.js";
import { showCauses, showKinds, showNotes, showSpot } from "./side.js";
import {
  MOST_NAMES,
  fieldOfWord,
  isShown,
  namesOf,
  scheduleQuestion,
  toggledShow,
} from "./state.js";
import { ScheduleView, spotOf } from "./view.js";
import { causeNames, peakName, scheduleRow, spotLines } from "./words.js";
import { Simulated } from "./model/simulated.js";
import { hideTip, showTip } from "../base/tip.js";

/** @typedef {import("../desk/state/fields.js").State} State */
/** @typedef {import("./paint/picture.js").Spot} Spot */
/**
 * @typedef {object} Offers
 * @property {import("./list.js").Offered[]} schedules
 * @property {import("./model/simulated.js").KindTable[]} kinds
 * @property {string[]} causes
 */

const TYPING_MS = 220;

/** Holds the view together; the state is that of the page's desk. */
export class ScheduleDesk {
  /** @param {import("../desk/desk.js").Desk} desk */
  constructor(desk) {
    this.desk = desk;
    /** @type {Offers | null} */
    this.offers = null;
    /**
     * The last answer for each schedule, with the question that it answers.
     * @type {Map<string, {question: string, data: Simulated}>}
     */
    this.answers = new Map();
    /** What could not be, by schedule. @type {Map<string, import("./list.js").Fault>} */
    this.faults = new Map();
    this.asked = 0;
    /** @type {number | null} */
    this.typing = null;
    this.asking = new AbortController();
    this.view = new ScheduleView(
      {
        frame: byId("schedule-frame"),
        scroller: byId("schedule-scroller"),
        canvas: byId("schedule"),
        axis: byId("schedule-axis"),
      },
      {
        hover: (spot) => this._hover(spot),
        choose: (spot) => this.choose(spot),
        moved: () => this._moved(),
        laid: placeHeads,
      },
      {
        row: scheduleRow,
        peak: peakName,
        cause: causeNames,
        axis: () =>
          t(this.blocks.some((data) => data?.isMeasured) ? "schedule.axis_ms" : "schedule.axis"),
      },
    );
    this.seek = new ScheduleSeek(this.view, (spot) => this.choose(spot));
    /** The names of the traces, once they are known. @type {string[]} */
    this.runs = [];
    this._listen();
  }

  get state() {
    return this.desk.state;
  }

  get isOpen() {
    return this.state.view === "schedule";
  }

  get isBusy() {
    return this.asked > 0 || this.typing !== null || this.view.redraw.waiting;
  }

  /** The schedules in view, from the top; null for one that was never answered. */
  get blocks() {
    return namesOf(this.state).map((name) => this.answers.get(name)?.data ?? null);
  }

  /**
   * Changes the state; `field` is the one typed into, so that one word typed is one step back.
   * @param {Partial<State>} change
   * @param {string} [field]
   */
  edit(change, field = "") {
    this.desk.state = { ...this.state, ...change };
    this.desk.address.step(field);
    this._showForm();
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(
      () => {
        this.typing = null;
        this._while(this._ask());
      },
      field ? TYPING_MS : 0,
    );
  }

  /** Shows the view that the state asks for, job or schedule. */
  async take() {
    document.body.dataset.view = this.isOpen ? "schedule" : "job";
    byId("job-view").hidden = this.isOpen;
    byId("schedule-view").hidden = !this.isOpen;
    for (const [id, isOn] of /** @type {[string, boolean][]} */ ([
      ["view-job", !this.isOpen],
      ["view-schedule", this.isOpen],
    ])) {
      if (isOn) byId(id).setAttribute("aria-current", "page");
      else byId(id).removeAttribute("aria-current");
    }
    if (this.isOpen) await this._while(this._ask());
  }

  /** Chooses what is at a spot, or nothing. @param {Spot | null} spot */
  choose(spot) {
    const data = spot && this.view.blocks[spot.block];
    const isThing = spot && data && (spot.entry >= 0 || spot.idle >= 0);
    this.view.choose(isThing ? spot : null);
    const action = isThing && spot.entry >= 0 ? `${spot.block}:${data.actionName(spot.entry)}` : "";
    this.desk.state = { ...this.state, action };
    this.desk.address.writeSoon();
    showSpot(this.view.chosen, data);
    say(
      isThing
        ? [
            blockTitle(data.header.name, data),
            ...spotLines({ ...spot, isStrip: false }, data),
          ].join("; ")
        : "",
    );
  }

  /** Clears what is chosen and pointed at. */
  clear() {
    hideTip();
    this.seek.clear();
    this.choose(null);
  }

  /**
   * Moves to another action, or changes what is drawn; true when the key means something.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const along = { ",": -1, ".": 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const letter = event.key.toLowerCase();
    if (along || across) {
      this.choose(along ? this.view.beside(along) : this.view.across(across ?? 0));
      this.view.reveal();
    } else if (letter === "f") this.view.centre();
    else if (letter === "n") this.seek.step(event.shiftKey ? -1 : 1);
    else if (letter === "c") this._toggle("path");
    else if (letter === "m") this._toggle("strips");
    else return false;
    return true;
  }

  /** Writes the commands that print the same; schedules of the same options share one. */
  command() {
    /** @type {Map<string, string[]>} */
    const byOptions = new Map();
    for (const data of this.blocks) {
      if (data && !data.isMeasured)
        byOptions.set(data.header.options, [
          ...(byOptions.get(data.header.options) ?? []),
          data.header.name,
        ]);
    }
    return [...byOptions]
      .map(([options, names]) => `serried schedule ${names.join(",")} ${options}`)
      .join(" && ");
  }

  _listen() {
    listenToScheduleForm(
      () => this.state,
      (change, field) => this.edit(change, field),
      (name) => void this._while(this._addRun(name)),
    );
    byId("schedule-form").addEventListener("focusout", () => (this.desk.address.typedInto = ""));
    byId("view-job").addEventListener("click", () => this._switch(""));
    byId("view-schedule").addEventListener("click", () => this._switch("schedule"));
    byId("schedule-fit").addEventListener("click", () => this.view.fit());
    for (const what of ["strips", "path"])
      byId(`schedule-${what}`).addEventListener("click", () => this._toggle(what));
    const copy = byId("copy-schedule-command");
    copy.addEventListener("click", () =>
      announce(t(copyText(this.command()) ? "copy.done" : "copy.failed"), copy),
    );
    window.addEventListener("popstate", () => this.take());
    document.addEventListener("spoken", () => this.take());
  }

  /** @param {string} view */
  _switch(view) {
    if (view === this.state.view) return;
    hideTip();
    this.desk.state = { ...this.state, view };
    this.desk.address.step("");
    this.take();
  }

  /** @param {string} what */
  _toggle(what) {
    this.desk.state = { ...this.state, show: toggledShow(this.state, what) };
    this.desk.address.step("");
    this._showTools();
  }

  /** @param {Spot | null} spot */
  _hover(spot) {
    const data = spot && this.view.blocks[spot.block];
    const lines = spot && data ? spotLines(spot, data) : [];
    if (!lines.length) return hideTip();
    const { x, y } = this.view.pointerOnPage();
    showTip(lines, x, y);
  }

  _moved() {
    this.desk.state = { ...this.state, window: String(this.view) };
    this.desk.address.writeSoon();
  }

  /** Counts a question as asked until it is answered. @param {Promise<void>} answer */
  async _while(answer) {
    this.asked++;
    byId("schedule-frame").setAttribute("aria-busy", "true");
    try {
      await answer;
    } catch (error) {
      console.error(error);
      byId("schedule-alert").textContent = t("error.server");
    } finally {
      this.asked--;
      if (!this.asked) byId("schedule-frame").removeAttribute("aria-busy");
    }
  }

  async _ask() {
    // Until the page speaks, nothing can be said; it then asks again.
    if (!document.documentElement.dataset.spoken) return;
    if (!this.offers)
      [this.offers, this.runs] = await Promise.all([
        askDocument("schedules"),
        askDocument("traces").then(runNames),
      ]);
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const names = namesOf(this.state);
    await Promise.all(names.map((name) => this._askOne(name, signal)));
    if (signal.aborted) return;
    for (const name of this.faults.keys()) if (!names.includes(name)) this.faults.delete(name);
    byId("schedule-alert").textContent = "";
    this._show();
  }

  /**
   * Puts a step of a run on top, below the schedule it was to run, whose sizes and times become the
   * run's.
   * @param {string} name
   */
  async _addRun(name) {
    const measured = readMeasured(name);
    if (!measured || !this.offers) return;
    const { kinds, causes, schedules } = this.offers;
    try {
      const { header } = new Simulated(
        await askPayload(measuredQuestion(measured, language())),
        kinds,
        causes,
      );
      const own = schedules
        .filter((each) => each.name === header.schedule)
        .map((each) => each.name);
      const names = new Set([
        ...own,
        measuredName(measured.trace, header.step ?? 0),
        ...namesOf(this.state),
      ]);
      const times = { ...header.times, of: "rank", latency: "0", memory_limit: "" };
      this.edit({
        ...times,
        window: "",
        action: "",
        names: [...names].slice(0, MOST_NAMES).join(","),
      });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this._showForm();
      announce(error.message, byId("schedule-add"));
    }
  }

  /** @param {string} name @param {AbortSignal} signal */
  async _askOne(name, signal) {
    const lang = chosenLanguage(this.state.lang, navigator.languages);
    const measured = readMeasured(name);
    const question = measured ? name : scheduleQuestion(this.state, name, "");
    if (this.answers.get(name)?.question === question) {
      this.faults.delete(name);
      return;
    }
    try {
      const asked = measured
        ? measuredQuestion(measured, lang)
        : `schedule?${scheduleQuestion(this.state, name, lang)}`;
      const buffer = await askPayload(asked, signal);
      const { kinds, causes } = /** @type {Offers} */ (this.offers);
      this.answers.set(name, { question, data: new Simulated(buffer, kinds, causes) });
      this.faults.delete(name);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.faults.set(name, { sentence: error.message, field: fieldOfWord(error.field) });
    }
  }

  _show() {
    const names = namesOf(this.state);
    for (const name of this.answers.keys()) if (!names.includes(name)) this.answers.delete(name);
    const { blocks } = this;
    const shown = blocks.filter((data) => data !== null);
    this._showForm();
    showHeads(names, blocks, this.faults, this.runs);
    this.view.show(blocks);
    this.view.take(this.state.window);
    this._showTools();
    showKinds(
      (this.offers?.kinds ?? []).filter(({ number }) =>
        shown.some((data) => data.kinds.some((kind) => kind.number === number)),
      ),
      shown.some(({ header }) => header.stages_per_rank > 1),
      shown.some((data) => data.hasPairs),
    );
    this.seek.show();
    showCauses(blocks);
    showNotes();
    byId("schedule-command").textContent = this.command();
    const titles = names.map((name, place) => blockTitle(name, blocks[place]));
    if (this.isOpen) document.title = `${titles.join(", ")} · serried`;
    const spot = this._spotOfState();
    this.view.choose(spot);
    showSpot(spot, spot && blocks[spot.block]);
    if (this.faults.size) say([...this.faults.values()].map(({ sentence }) => sentence).join(" "));
  }

  _showForm() {
    if (!this.offers) return;
    showScheduleForm(this.state);
    const known = (/** @type {string} */ name) => this.answers.get(name)?.data ?? null;
    showList(
      this.state,
      { schedules: this.offers.schedules, runs: this.runs },
      this.faults,
      known,
      (names) => this.edit({ names, action: "" }),
    );
    showFaults(this.faults.values());
  }

  _showTools() {
    for (const what of ["strips", "path"])
      byId(`schedule-${what}`).setAttribute("aria-pressed", String(isShown(this.state, what)));
    this.view.draw(isShown(this.state, "strips"), isShown(this.state, "path"));
  }

  /** Returns the spot of the action that the state names; null where it is not in view. */
  _spotOfState() {
    const [place, ...rest] = this.state.action.split(":");
    const data = /^\d+$/.test(place) ? this.blocks[Number(place)] : null;
    const entry = data ? data.entryOf(rest.join(":")) : -1;
    if (!data || entry < 0) return null;
    return spotOf(Number(place), data.rankOf(entry), entry, data.drawn.start[entry]);
  }
}

/** @param {{traces: {name: string}[]}} answer */
function runNames({ traces }) {
  return traces.map(({ name }) => name);
}
