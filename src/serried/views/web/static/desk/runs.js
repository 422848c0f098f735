// What was measured of jobs: the traces on offer, the one in view, and whose layout the map shows.

import { byId } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { integers, readPayload } from "../base/payload.js";
import { askDocument, askPayload } from "../base/questions.js";
import { Tracks } from "../timeline/trace/tracks.js";
import { Checks } from "./checks.js";
import {
  DEFAULTS,
  asksFor,
  namesJob,
  namesRun,
  namesTab,
  withJob,
  withTraining,
} from "./state/fields.js";

/** @typedef {import("./state/fields.js").State} State */
/** @typedef {import("./state/fields.js").Field} Field */
/**
 * @typedef {object} Measured  what was measured of a job
 * @property {string} name
 * @property {Record<string, string | string[]>} question
 * @property {Record<string, string>} [simulated]  words of the Schedule tab that say its step
 */
/**
 * @typedef {Measured & {run: string, has_step_plan: boolean, has_evidence: boolean}} Offer  a trace
 *   to show, whether the plan of its step lies beside it, and whether its folder can be diagnosed
 */
/**
 * @typedef {object} Told  what there is, is read still, and could not be
 * @property {Offer[]} traces
 * @property {string[]} reading
 * @property {Record<string, string>[]} problems
 */
/**
 * @typedef {object} RunEvents
 * @property {() => void} forget  what launch files said is of another job
 * @property {(tracks: Tracks | null) => Promise<unknown>} traced  one was sent, or there is none
 * @property {(tracks: Tracks) => Promise<unknown>} grown  it was sent again, longer than before
 * @property {() => void} met     it is known what there is to show
 */

/** What an address calls a span: its rank, and when it begins. */
const NAME = /^\d{1,9}\.\d{1,18}(\.\d{1,6})?$/;

/** What an address says of moments and spans of one run. */
export const OF_A_RUN = { slice: "", time: "", range: "" };

/** Holds the traces; the layout that is asked for is the layout desk's. */
export class Runs {
  /**
   * @param {import("./layout.js").LayoutDesk} layout
   * @param {RunEvents} events
   */
  constructor(layout, events) {
    this.layout = layout;
    this.store = layout.store;
    this.checks = new Checks();
    this.events = events;
    /** @type {Offer[]} */
    this.offers = [];
    /** @type {Tracks | null} */
    this.tracks = null;
    /** What the address named as the page opened; while runs are being read it is written anew. */
    this.named = { job: false, tab: false, run: false };
    /** The run that the page's link is of though it is not open, and the trace that stands here. */
    this.other = { run: "", shown: "" };
    /** The span that the page's link names though it is not in the run; "" for none. */
    this.lost = "";
    /** The words of the plan whose step is in view in place of a run; "" for none. */
    this.planned = "";
    /** The first diagnosis. @type {Measured | undefined} */
    this.diagnosed = undefined;
    document.addEventListener("spoken", () => this._showOther());
  }

  /** The trace in view, as it was offered. */
  get offer() {
    return this.offers[Number(this.store.state.trace)] ?? this.offers[0];
  }

  /** The number of the trace in view, -1 without one. */
  get trace() {
    return this.offer ? this.offers.indexOf(this.offer) : -1;
  }

  /** Whether there is a timeline to show: a run's, or a planned step's. */
  get isShown() {
    return Boolean(this.offers.length || this.planned);
  }

  /** What names the trace in view in a question, "" without one. */
  get asked() {
    if (this.planned) return `plan&${this.planned}`;
    return this.trace < 0 ? "" : String(this.trace);
  }

  /** The names of what there is to choose from, and which of them is in view. */
  get choice() {
    const names = this.offers.map(({ name }) => name);
    if (this.planned) names.push(t("timeline.planned_step"));
    return { names, chosen: this.planned ? names.length - 1 : Math.max(0, this.trace) };
  }

  /**
   * Shows the state that the address holds, or the first trace's own layout; without a trace that
   * of the first diagnosis, which it opens.
   * @param {Measured | undefined} diagnosed
   */
  async open(diagnosed) {
    const { search } = location;
    this.named = { job: namesJob(search), tab: namesTab(search), run: namesRun(search) };
    this.diagnosed = diagnosed;
    const [told] = await Promise.all([askDocument("traces"), this.checks.open()]);
    this.offers = told.traces;
    if (told.reading.length) void this._await(told);
    await this._meet(!told.reading.length);
  }

  /** Asks anew which traces there are. */
  async learn() {
    this._know((await askDocument("traces")).traces);
    this._showSection();
    this.events.met();
  }

  /**
   * Takes an answer of which traces there are. None is ever closed, so that one with fewer of them
   * is older than what is known, and came late.
   * @param {Offer[]} traces
   */
  _know(traces) {
    if (traces.length >= this.offers.length) this.offers = traces;
  }

  /** Asks anew which traces there are, and shows one with its layout. @param {string} trace */
  async renew(trace) {
    await this.learn();
    this.show(trace);
    this.showOwnLayout();
  }

  /** Returns a state that shows the newest trace with its own layout. @param {State} state */
  own(state) {
    return this.offer ? ownLayout(state, this.offer) : state;
  }

  /**
   * Tells whether the map shows the layout of what was measured.
   * @param {Measured | undefined} measured
   */
  isOwn(measured) {
    return Boolean(measured && asksFor(this.store.state, measured.question));
  }

  /**
   * Shows another trace, and its layout where the map shows that of the one before.
   * @param {string} trace
   */
  show(trace) {
    if (this.planned && Number(trace) === this.offers.length) return;
    const before = this.offer;
    const follows = this.isOwn(before);
    const offer = this.offers[Number(trace)];
    const seen = { by: "", folded: "", seek: "", planned_step: "" };
    const next = { ...this.store.state, ...OF_A_RUN, ...seen, trace, run: offer?.run ?? "" };
    this._tellOther("", "");
    this.layout.edit(follows && offer ? ownLayout(next, offer, before) : next);
    void this.layout.waiting.until(this.ask());
  }

  /**
   * Shows the layout of the trace in view, or of what else was measured.
   * @param {Measured | undefined} [measured]
   */
  showOwnLayout(measured = this.offer) {
    this.events.forget();
    const { state } = this.store;
    if (measured) this.layout.edit({ ...ownLayout(state, measured), slice: state.slice });
  }

  /**
   * Shows the planned step that words ask for in place of a run, or the run again for "".
   * @param {string} words
   */
  async plan(words) {
    if (words === this.planned) return;
    // Moments and spans of one step are none of another's; an address may name some of its own.
    if (this.planned) this.store.set(OF_A_RUN);
    this.planned = words;
    this._showSection();
    try {
      await this.ask();
    } catch (error) {
      if (this.planned === words) this.planned = "";
      this._showSection();
      throw error;
    }
  }

  /** Asks for the trace in view, without its spans where they are many. */
  async ask() {
    const { asked } = this;
    if (!asked) {
      this.tracks = null;
      return this.events.traced(null);
    }
    const tracks = new Tracks(await askPayload(`trace?trace=${asked}`));
    if (asked !== this.asked) return undefined;
    await this._findSpan(tracks);
    if (asked !== this.asked) return undefined;
    this.tracks = tracks;
    return this.events.traced(tracks);
  }

  /** Asks again for the trace in view, which has grown: what is selected of it stays. */
  async refresh() {
    const { asked } = this;
    const tracks = new Tracks(await askPayload(`trace?trace=${asked}`));
    if (asked !== this.asked) return undefined;
    // A number, as older addresses have it, is another span's in the longer run.
    const before = this.tracks?.idOf(this.store.state.slice) ?? -1;
    if (before >= 0) this.store.soon({ slice: this.tracks?.nameOf(before) ?? "" });
    await this._findSpan(tracks);
    this.tracks = tracks;
    return this.events.grown(tracks);
  }

  /**
   * Asks which span the address names where it was not sent, and says so where there is none.
   * @param {Tracks} tracks
   */
  async _findSpan(tracks) {
    const { slice } = this.store.state;
    if (!slice || tracks.idOf(slice) >= 0) return;
    const found = tracks.isWhole || !NAME.test(slice) ? -1 : await this._askSpan(tracks, slice);
    if (found < 0) this.store.set({ slice: "" });
    this.lost = found < 0 ? slice : "";
    this._showOther();
  }

  /** @param {Tracks} tracks @param {string} name */
  async _askSpan(tracks, name) {
    const { columns } = readPayload(
      await askPayload(`trace/span?trace=${this.asked}&named=${name}`),
    );
    tracks.keep(columns);
    const [id = -1] = integers(columns, "id");
    if (id >= 0) tracks.numbers.set(name, id);
    return id;
  }

  _showSection() {
    byId("timeline-section").hidden = byId("splitter").hidden = !this.isShown;
  }

  /** Says which traces are being read, and shows them once they are. @param {Told} told */
  async _await(told) {
    const note = byId("trace-reading");
    try {
      for (; told.reading.length; told = await askDocument("traces?wait=1")) {
        note.textContent = t("trace.reading", { names: told.reading.join(", ") });
        note.hidden = false;
      }
    } catch {
      this.layout.complain(t("error.server"));
      return;
    }
    note.textContent = told.problems.map((each) => each[language()] ?? each.en).join("; ");
    note.hidden = !told.problems.length;
    this._know(told.traces);
    // What was opened first may be in view by now; a link waits for the run that it names.
    if (this.tracks && !this.named.run) return this.events.met();
    await this.layout.waiting.until(this._meet(true));
  }

  /**
   * Shows what there is to show: the job that the address names, else that of the first trace.
   * @param {boolean} isAll  whether no further trace is being read
   */
  async _meet(isAll) {
    const { named, store } = this;
    if (isAll) this._findRun();
    const measured = this.offer ?? this.checks.offers[0] ?? this.diagnosed;
    if (measured && !named.job) {
      const { slice, rank, time, heat } = store.state;
      store.set({ ...ownLayout(store.state, measured), slice, rank, time });
      if (!this.offer) store.set({ heat: heat || this.checks.first });
    }
    if (!named.tab) store.set({ view: this.offer ? "run" : this._firstView });
    const isAsked = store.state.view === "diagnose" && !store.state.diagnosed;
    if (isAsked && this.diagnosed) store.set({ diagnosed: this.diagnosed.name });
    this._showSection();
    this.events.met();
    store.write();
    await Promise.all([this.layout.ask(), this.ask()]);
    document.body.classList.add("ready");
  }

  /** The tab that opens by itself where no run is served. */
  get _firstView() {
    return this.diagnosed && !this.checks.offers.length ? "diagnose" : this.store.state.view;
  }

  /** Finds the run that the address means among those that are open, or says that it is another. */
  _findRun() {
    const { run, trace } = this.store.state;
    const own = this.offers[Number(trace)];
    const found =
      !run || own?.run === run
        ? this.offers.indexOf(own ?? this.offers[0])
        : this.offers.findIndex((each) => each.run === run);
    if (found >= 0) {
      this.store.set({ trace: String(found), run: this.offers[found]?.run ?? "" });
      return this._tellOther("", "");
    }
    const shown = this.offer;
    // Spans and moments of another run are none of this one's; without any, the link stays.
    if (shown) this.store.set({ ...OF_A_RUN, run: shown.run, trace: String(this.trace) });
    return this._tellOther(run, shown?.name ?? "");
  }

  /**
   * Says that the page's link is of a run that is not open; "" where that is not so.
   * @param {string} run
   * @param {string} shown  the name of the trace that stands here, "" for none
   */
  _tellOther(run, shown) {
    this.other = { run, shown };
    this._showOther();
  }

  _showOther() {
    const { run, shown } = this.other;
    const note = byId("trace-other");
    const parts = [
      ...(run ? [t(shown ? "trace.other" : "trace.none", { run, shown })] : []),
      ...(this.lost ? [t("trace.lost", { span: this.lost })] : []),
    ];
    note.hidden = !parts.length;
    note.textContent = parts.join(" ");
  }
}

/**
 * Returns a state with the own layout of what was measured, types in view if there were none, and
 * its own step on the Schedule tab where nobody asked for another.
 * @param {State} state
 * @param {Measured} measured
 * @param {Measured} [before]  what was in view: its step goes with it
 * @returns {State}
 */
export function ownLayout(state, { question, simulated = {} }, before) {
  const job = withTraining(withJob(state, question), {}, before?.simulated);
  const usual = Object.entries(simulated).filter(
    ([field]) => job[/** @type {Field} */ (field)] === DEFAULTS[/** @type {Field} */ (field)],
  );
  return { ...job, ...Object.fromEntries(usual), dims: state.dims || String(question.dims) };
}
