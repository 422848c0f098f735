// The desk of the plan: whether it is drawn, and what it says of a span: how late it was, and why.

import { announce } from "../base/announcer.js";
import { duration } from "../base/clock.js";
import { byId, make } from "../base/dom.js";
import { counted, language, t } from "../base/i18n.js";
import { Refusal, askDocument, askPayload } from "../base/questions.js";
import { FOOT, paintPlace, paintPlan } from "./paint/plan.js";
import { Plan } from "./trace/plan.js";

/** @typedef {import("./state.js").Host} Host */
/**
 * @typedef {object} Cause
 * @property {number} rank
 * @property {"longer" | "between" | "message" | "began"} what
 * @property {number} ns
 * @property {number} count
 */
/**
 * @typedef {object} Late
 * @property {number} planned_start_ns
 * @property {number} planned_ns
 * @property {number | null} late_ns
 * @property {number} longer_ns
 * @property {Cause[]} causes
 */

const KEPT = 500;
/** What is below this is no difference, in nanoseconds. */
const LEAST_NS = 1000;

/** Holds the plan of the trace in view; the state is the page's. */
export class PlanDesk {
  /**
   * @param {Host} host
   * @param {import("./view.js").TimelineView} view
   */
  constructor(host, view) {
    this.host = host;
    this.view = view;
    /** @type {Plan | null} */
    this.plan = null;
    /** Why there is none. */
    this.refusal = "";
    /** The trace whose plan that is. */
    this.trace = "";
    /** What was said of each span, by its id. @type {Map<number, Late>} */
    this.said = new Map();
    /** @type {Map<number, Promise<void>>} */
    this.asking = new Map();
    this.asked = 0;
    this.button = byId("timeline-plan");
    this.button.addEventListener("click", () => {
      host.store.step({ plan: host.store.state.plan ? "" : "1" });
      void this.take();
    });
    document.addEventListener("spoken", () => void this._retell());
    view.layers.unshift((picture, context) => {
      if (this.isShown && this.plan) paintPlan(this.plan, picture, context);
    });
    view.lights.push((picture, context) => {
      const { hovered, selected } = picture;
      if (this.isShown && this.plan && hovered !== selected)
        paintPlace(this.plan, picture, context, hovered);
    });
  }

  get isBusy() {
    return this.asked > 0;
  }

  /** Whether the plan of a run is asked for; a plan has none of its own. */
  get isWanted() {
    return Boolean(this.host.store.state.plan && !this.host.tracks?.isPlanned);
  }

  /** Whether the plan is drawn. */
  get isShown() {
    return Boolean(this.isWanted && this.plan);
  }

  /** Whether spans are told how they stand to the plan. */
  get isAsked() {
    return Boolean(this.isWanted || this.host.store.state.colour === "lateness");
  }

  /** Shows what the state says of the plan. */
  async take() {
    const { host } = this;
    const { store, trace } = host;
    const was = this.isAsked && trace === this.trace;
    if (trace !== this.trace)
      Object.assign(this, { trace, plan: null, refusal: "", said: new Map() });
    if (this.isWanted && !this.plan) await this._ask(trace);
    if (this.refusal && store.state.plan) store.soon({ plan: "" });
    this._show();
    if (this.isAsked && !was) host.shown();
    if (this.refusal) announce(this.refusal, this.button);
  }

  _show() {
    const { button, isShown, view } = this;
    button.setAttribute("aria-pressed", String(isShown));
    button.toggleAttribute("disabled", Boolean(this.refusal));
    button.title = this.refusal || t("timeline.plan_title");
    view.foot = isShown ? FOOT : 0;
    view.redraw.request();
  }

  /** Says everything in another language, in which a refusal has to be asked for. */
  async _retell() {
    if (this.refusal) await this._ask(this.trace);
    this._show();
  }

  /**
   * Writes how a span stands to the plan, as far as it is known; asks for the rest.
   * @param {number} id
   * @returns {string[]}
   */
  lines(id) {
    const late = this.isAsked ? this.said.get(id) : undefined;
    return late ? lateLines(late) : [];
  }

  /** Asks how a span stands to the plan, once. @param {number} id */
  explain(id) {
    const { tracks } = this.host;
    const span = tracks?.span(id);
    const isTaken = this.trace === this.host.trace;
    if (!tracks || !span || !isTaken || !this.isAsked || this.said.has(id))
      return Promise.resolve();
    const known = this.asking.get(id) ?? this._explain(id, tracks, span);
    this.asking.set(id, known);
    return known;
  }

  /** Adds to what is said of the selected span how it stands to the plan. @param {number} id */
  async show(id) {
    if (!this.isAsked) return;
    await this.explain(id);
    const { pinned } = this.host;
    const late = this.said.get(id);
    if (!late || pinned?.type !== "slice" || pinned.slice !== id) return;
    const place = /** @type {HTMLElement} */ (byId("selected").querySelector("div"));
    place.querySelector(".late")?.remove();
    place.append(
      make(
        "section",
        { class: "late" },
        make("h4", {}, t("late.title")),
        ...lateLines(late).map((line) => make("p", {}, line)),
      ),
    );
  }

  /** @param {string} trace */
  async _ask(trace) {
    this.asked++;
    try {
      const plan = new Plan(await askPayload(`trace/plan?trace=${trace}&lang=${language()}`));
      if (trace === this.trace) this.plan = plan;
    } catch (error) {
      if (!(error instanceof Refusal)) return this.host.fail(error);
      if (trace === this.trace) this.refusal = error.message;
    } finally {
      this.asked--;
    }
  }

  /**
   * @param {number} id
   * @param {import("./trace/tracks.js").Tracks} tracks
   * @param {import("./trace/sheet.js").Slice} span
   */
  async _explain(id, tracks, span) {
    const { said } = this;
    const numbers = { stage: span.stage, microbatch: span.microbatch, step: span.step };
    const known = Object.entries(numbers)
      .filter(([, value]) => value >= 0)
      .map(([name, value]) => `&${name}=${value}`);
    const kind = tracks.actions.get(span.kind)?.name ?? "";
    this.asked++;
    try {
      /** @type {Late} */
      const late = await askDocument(
        `trace/late?trace=${this.trace}&rank=${tracks.rankOf(id)}` +
          `&start=${span.start}&kinds=${kind}${known.join("")}`,
      );
      if (said.size > KEPT) said.clear();
      said.set(id, late);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    } finally {
      this.asked--;
      this.asking.delete(id);
    }
  }
}

/** Writes how a span stands to the plan, a line each. @param {Late} late @returns {string[]} */
function lateLines({
  late_ns: late,
  planned_start_ns: start,
  planned_ns: planned,
  longer_ns: longer,
  causes,
}) {
  if (late === null) return [t("late.unplanned")];
  const when =
    Math.abs(late) < LEAST_NS
      ? t("late.on_time")
      : t(late > 0 ? "late.late" : "late.early", { time: duration(Math.abs(late)) });
  const took =
    Math.abs(longer) < LEAST_NS
      ? t("late.as_long")
      : t(longer > 0 ? "late.longer" : "late.shorter", { time: duration(Math.abs(longer)) });
  const why = late < LEAST_NS ? [] : causes.filter(({ ns }) => ns >= LEAST_NS).map(causeText);
  return [
    t("late.planned", { start: duration(start), planned: duration(planned) }),
    `${when} · ${took}`,
    ...why,
  ];
}

/** @param {Cause} cause */
function causeText({ rank, what, ns, count }) {
  return t(`delay.${what}`, { rank, time: duration(ns), actions: counted("unit.actions", count) });
}
