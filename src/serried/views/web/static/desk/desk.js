// The desk that all views stand on: it holds the state, asks the server, and tells the views.

import { Address } from "./state/address.js";
import { say } from "../base/announcer.js";
import { listenToControls } from "./controls.js";
import {
  complain,
  showAnswer,
  showOtherRun,
  showPinned,
  showScene,
  showTimeline,
  showWords,
} from "./display.js";
import { byId } from "../base/dom.js";
import { leaveSearch } from "./finder.js";
import { showForm } from "./side/form.js";
import { Checks } from "./side/checks.js";
import { HeatDesk } from "./side/heats.js";
import { chosenLanguage, language, speak, t } from "../base/i18n.js";
import { Launch } from "./launch/reading.js";
import { litBy } from "../base/lit.js";
import { pinWords, pinnedTarget } from "./state/pins.js";
import { Refusal, askDocument, askPayload } from "../base/questions.js";
import { Scene } from "../base/scene.js";
import { spokenTarget } from "./speech.js";
import { DEFAULTS, asksFor, namesJob, question, readState, withJob } from "./state/fields.js";
import { onThemeChange } from "../base/theme.js";
import { TimelineDesk } from "../timeline/desk.js";
import { PlanDesk } from "../timeline/plan/desk.js";
import { SeekDesk } from "../timeline/seek.js";
import { StretchPanel } from "../timeline/stretch.js";
import { hideTip } from "../base/tip.js";
import { Tracks } from "../timeline/trace/tracks.js";
import { makeList, makeMap } from "./views.js";

/** @typedef {import("./state/fields.js").State} State */
/** @typedef {import("../base/lit.js").Target} Target */
/**
 * @typedef {object} Measured  what was measured of a job
 * @property {string} name
 * @property {Record<string, string | string[]>} question
 */
/** @typedef {Measured & {run: string}} Offer  a trace to show */
/**
 * @typedef {object} Told  what there is, is read still, and could not be
 * @property {Offer[]} traces
 * @property {string[]} reading
 * @property {Record<string, string>[]} problems
 */

/** What an address says of moments and spans of one run. */
const OF_A_RUN = { slice: "", time: "", range: "" };
const TYPING_MS = 180;
/** Fields that change where ranks stand on the map, and so end a view of it. */
const SHAPES = ["world_size", "gpus_per_node", "gpus_per_rank", "arrange"];

/** Holds the page together. */
export class Desk {
  constructor() {
    /** @type {State} */
    this.state = readState(location.search);
    /** @type {import("../base/scene.js").PageWords | null} */
    this.words = null;
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {Tracks | null} */
    this.tracks = null;
    /** @type {Offer[]} */
    this.offers = [];
    /** @type {Target | null} */
    this.hovered = null;
    /** Answers awaited. */
    this.asked = 0;
    /** @type {number | null} */
    this.typing = null;
    this.asking = new AbortController();
    /** Kept once the page has shown what its address holds. */
    this.opened = Promise.resolve();
    this.launch = new Launch(this, (answer) => void this._while(answer));
    this.address = new Address(
      () => this.state,
      () => (this.offers.length ? ["world_size"] : []),
      () => this.launch.mark,
    );
    this.map = makeMap(this);
    this.timelines = new TimelineDesk(this);
    this.timeline = this.timelines.view;
    this.list = makeList(this);
    this.checks = new Checks();
    this.heats = new HeatDesk(this);
    this.plans = new PlanDesk(this);
    this.seeks = new SeekDesk(this);
    this.stretches = new StretchPanel(this);
    listenToControls(this);
    window.addEventListener("popstate", () => this._while(this._return()));
    onThemeChange(() => {
      showWords(this);
      if (this.scene) showScene(this, this.scene);
    });
  }

  /** Shows the state that the address holds, or the first trace's own layout. */
  async open() {
    this.opened = this._while(this._open());
    await this.opened;
  }

  // ---- what the views and the controls call

  /**
   * Changes the state; `field` is the one typed into, so that one word typed is one step back.
   * @param {Partial<State>} change
   * @param {string} [field]
   */
  edit(change, field = "") {
    const map = SHAPES.some((each) => each in change) ? "" : this.state.map;
    this.state = { ...this.state, map, ...change };
    this.address.step(field);
    showForm(this.state, null);
    this.launch.compare();
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(
      () => {
        this.typing = null;
        this._while(this._ask());
      },
      field ? TYPING_MS : 0,
    );
  }

  /** Returns to the state of a page that was just opened. */
  reset() {
    const { lang, trace, run } = this.state;
    const start = { ...DEFAULTS, lang, trace, run };
    this.launch.forget();
    this.edit(this.offer ? this._ownLayout(start, this.offer) : start);
    this.timeline.fit();
  }

  /**
   * Shows another trace, and its layout where the map shows that of the one before.
   * @param {string} trace
   */
  showTrace(trace) {
    const follows = this.offer && asksFor(this.state, this.offer.question);
    const offer = this.offers[Number(trace)];
    const next = {
      ...this.state,
      ...OF_A_RUN,
      trace,
      run: offer?.run ?? "",
      by: "",
      folded: "",
      seek: "",
    };
    showOtherRun("", "");
    this.edit(follows && offer ? this._ownLayout(next, offer) : next);
    this._while(this._askTrace());
  }

  /**
   * Shows the layout of the trace in view, or of what else was measured.
   * @param {Measured | undefined} [measured]
   */
  showOwnLayout(measured = this.offer) {
    this.launch.forget();
    if (measured) this.edit({ ...this._ownLayout(this.state, measured), slice: this.state.slice });
  }

  /** Lights a target while the pointer is on it. @param {Target | null} target */
  hover(target) {
    this.hovered = target;
    this.light();
  }

  /** Lights and says the rank that the keyboard is on. @param {number} rank */
  focusRank(rank) {
    this.hover({ type: "rank", rank });
    if (this.scene) say(spokenTarget({ type: "rank", rank }, this.scene, this.tracks));
  }

  /** Pins a target, or nothing. @param {Target | null} target */
  pin(target) {
    this._pinWords(pinWords(target, this.scene));
  }

  /** Pins the ranks that a search finds. @param {string} find */
  pinSearch(find) {
    this._pinWords({ ...pinWords(null, null), find });
  }

  /** Pins a rank and brings it into view everywhere. @param {number} rank */
  choose(rank) {
    this.pin({ type: "rank", rank });
    this.map.reveal(rank);
    this.timeline.revealRank(rank);
  }

  /** Pins a slice, or the rank of its row, or nothing. @param {number} span @param {number} rank */
  pinSpan(span, rank) {
    if (span >= 0) this.pin({ type: "slice", slice: span, rank });
    else this.pin(rank < 0 ? null : { type: "rank", rank });
    this.timeline.reveal(span);
    this.timeline.revealRank(rank);
    this.map.reveal(rank);
  }

  /** Clears what is pinned, found and pointed at. */
  clear() {
    hideTip();
    this.map.blur();
    leaveSearch();
    this.timelines.clear();
    this.seeks.clear();
    this.pin(null);
  }

  /** Shows anew what is pinned, when more is known of it. */
  shown() {
    showPinned(this);
  }

  /** Says what the server refused, or that it does not answer. @param {unknown} error */
  fail(error) {
    if (!(error instanceof Refusal)) console.error(error);
    complain(this, error instanceof Refusal ? error.message : t("error.server"));
  }

  /** Shows in map and timeline what is lit. */
  light() {
    const lit = this.lit();
    this.map.light(lit, this.pinnedRank);
    this.timeline.light(lit, this.scene?.kinds ?? [], this.pinnedRank);
  }

  /** Takes the views as they were moved to into the state. */
  moved() {
    this.state = { ...this.state, map: String(this.map), time: String(this.timeline) };
    this.address.writeSoon();
  }

  /** Asks Python what a rank is, and shows the answer. @param {number} rank */
  askRank(rank) {
    this._while(this._askRank(rank));
  }

  // ---- what the views and the controls read

  /** Returns what is lit now. */
  lit() {
    return this.scene && this.isDrawn ? litBy(this.scene, this.hovered ?? this.pinned) : null;
  }

  get isBusy() {
    return this.asked > 0 || this.typing !== null;
  }

  get isDrawn() {
    return Boolean(this.scene?.kinds.length);
  }

  get pinned() {
    return pinnedTarget(this.state, this.scene, this.tracks);
  }

  get pinnedRank() {
    const target = this.pinned;
    return target?.type === "rank" || target?.type === "slice" ? target.rank : -1;
  }

  /** The trace in view, as it was offered. */
  get offer() {
    return this.offers[Number(this.state.trace)] ?? this.offers[0];
  }

  // ---- questions and answers

  /** Counts a question as asked until it is answered. @param {Promise<void>} answer */
  async _while(answer) {
    this.asked++;
    try {
      await answer;
    } catch (error) {
      console.error(error);
      complain(this, t("error.server"));
    } finally {
      this.asked--;
    }
  }

  async _open() {
    await this._speak();
    const [told] = await Promise.all([askDocument("traces"), this.checks.open()]);
    this.offers = told.traces;
    if (told.reading.length) void this._awaitTraces(told);
    await this._meet(!told.reading.length);
  }

  /** Says which traces are being read, and shows them once they are. @param {Told} told */
  async _awaitTraces(told) {
    const note = byId("trace-reading");
    try {
      for (; told.reading.length; told = await askDocument("traces?wait=1")) {
        note.textContent = t("trace.reading", { names: told.reading.join(", ") });
        note.hidden = false;
      }
    } catch {
      return complain(this, t("error.server"));
    }
    note.textContent = told.problems.map((each) => each[language()] ?? each.en).join("; ");
    note.hidden = !told.problems.length;
    this.offers = told.traces;
    await this._while(this._meet(true));
  }

  /** Finds the run that the address means among those that are open, or says that it is another. */
  _findRun() {
    const { run, trace } = this.state;
    const own = this.offers[Number(trace)];
    const found =
      !run || own?.run === run
        ? this.offers.indexOf(own ?? this.offers[0])
        : this.offers.findIndex((each) => each.run === run);
    if (found >= 0) {
      this.state = { ...this.state, trace: String(found), run: this.offers[found]?.run ?? "" };
      return showOtherRun("", "");
    }
    const shown = this.offer;
    showOtherRun(run, shown?.name ?? "");
    // Spans and moments of another run are none of this one's; without any, the link stays as it
    // is.
    if (shown) this.state = { ...this.state, ...OF_A_RUN, run: shown.run };
  }

  /**
   * Shows what there is to show: the job that the address names, else that of the first trace.
   * @param {boolean} isAll  whether no further trace is being read
   */
  async _meet(isAll) {
    if (isAll) this._findRun();
    const measured = this.offer ?? this.checks.offers[0];
    if (measured && !namesJob(location.search)) {
      const { slice, rank, time } = this.state;
      this.state = { ...this._ownLayout(this.state, measured), slice, rank, time };
      if (!this.offer) this.state.heat ||= this.checks.first;
    }
    byId("timeline-section").hidden = !this.offers.length;
    byId("splitter").hidden = !this.offers.length;
    this.address.write();
    await Promise.all([this._ask(), this._askTrace(), this.offer ? null : this.heats.take()]);
    document.body.classList.add("ready");
  }

  /** Shows the state that the browser has gone back or forward to. */
  async _return() {
    const { trace } = this.state;
    this.state = readState(location.search);
    this.address.typedInto = "";
    this.launch.recall(history.state);
    showForm(this.state, null);
    await this._ask();
    if (trace !== this.state.trace) await this._askTrace();
    else if (this.tracks) {
      this.timeline.take(this.state.time);
      await Promise.all([
        this.timelines.take(),
        this.plans.take(),
        this.seeks.take(),
        this.heats.take(),
      ]);
    }
  }

  _language() {
    return chosenLanguage(this.state.lang, navigator.languages);
  }

  /** Turns the page to the language that the state asks for. */
  async _speak() {
    await speak(this._language());
    this.words = await askDocument(`page?lang=${language()}`);
    showWords(this);
    await this.launch.retell();
  }

  /**
   * Returns a state with a trace's own layout in it, and types in view if there were none.
   * @param {State} state
   * @param {Measured} offer
   */
  _ownLayout(state, offer) {
    return { ...withJob(state, offer.question), dims: state.dims || String(offer.question.dims) };
  }

  async _ask() {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      if (this._language() !== language()) await this._speak();
      this.scene = new Scene(
        await askPayload(`layout?${question(this.state, language())}`, signal),
      );
      complain(this, "");
      showScene(this, this.scene);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      complain(this, error.message, error.field);
    }
  }

  async _askTrace() {
    if (!this.offer) return;
    const trace = this.offers.indexOf(this.offer);
    const tracks = new Tracks(await askPayload(`trace?trace=${trace}`));
    this.tracks = tracks;
    this.timelines.show(tracks);
    this.timeline.take(this.state.time);
    showTimeline(this);
    showPinned(this);
    await Promise.all([
      this.timelines.take(),
      this.plans.take(),
      this.seeks.take(),
      this.heats.take(),
    ]);
  }

  /** @param {number} rank */
  async _askRank(rank) {
    const { scene } = this;
    try {
      const asked = question(this.state, language(), { rank: String(rank) });
      const answer = await askDocument(`rank?${asked}`);
      if (scene === this.scene) showAnswer(this, answer);
    } catch (error) {
      // The layout was asked for in the same words, so its refusal stands in place already.
      if (!(error instanceof Refusal)) throw error;
    }
  }

  /** @param {Pick<State, "rank" | "group" | "slice" | "find">} words */
  _pinWords(words) {
    this.state = { ...this.state, ...words };
    this.hovered = null;
    showPinned(this);
    this.address.writeSoon();
  }
}
