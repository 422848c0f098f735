// The desk of the Plan tab: whether the job in view fits, how long its step takes, and what of.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId, make, unfold } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { Refusal, askDocument } from "../base/questions.js";
import { onThemeChange, theme } from "../base/theme.js";
import { hideTip, showTip } from "../base/tip.js";
import { Waiting } from "../base/waiting.js";
import { MatrixPicture } from "./matrix.js";
import { foundAt, paintPlan } from "./paint.js";
import { PlanPins } from "./pins.js";
import { PlanSearch } from "./search.js";
import { PLAN_FIELDS, isAssumed, planField, planWords, stepWords, stillAssumed } from "./state.js";
import {
  jobText,
  memoryKey,
  memoryRows,
  mfuText,
  placeLines,
  timeRows,
  trafficRows,
} from "./words.js";

/** @typedef {import("./planned.js").PlanAnswer} PlanAnswer */
/** @typedef {import("./state.js").PlanField} PlanField */
/** @typedef {import("./state.js").PlanHost} PlanHost */
/** @typedef {import("./state.js").PlanState} PlanState */

const TYPING_MS = 220;
/** Letters of a word from which on its field takes a row of its own. */
const MOST_LETTERS = 20;

/** Holds the tab together; its state is the page's. */
export class PlanDesk {
  /** @param {PlanHost} host @param {import("./traffic.js").PlanTraffic} traffic */
  constructor(host, traffic) {
    this.host = host;
    /** @type {PlanAnswer | null} */
    this.answer = null;
    this.asking = new AbortController();
    this.hasOffers = false;
    this.surface = new Surface(byId("plan"), byId("plan-frame"));
    this.redraw = new Redraw(() => this._draw());
    this.search = new PlanSearch(host);
    this.pins = new PlanPins(host);
    this.matrix = new MatrixPicture();
    this.traffic = traffic;
    this.waiting = new Waiting((error) => {
      console.error(error);
      this._blame(t("error.server"), "");
    });
    /** @type {number | null} */
    this.typing = null;
    this._listen();
  }

  get state() {
    return this.host.store.state;
  }

  get isOpen() {
    return this.state.view === "plan";
  }

  get isStepShown() {
    return this.isOpen && this.state.planned_step === "1";
  }

  get isBusy() {
    const isDrawing =
      this.redraw.waiting ||
      this.matrix.redraw.waiting ||
      this.pins.waiting.isBusy ||
      this.search.isBusy ||
      this.traffic.redraw.waiting;
    return this.waiting.isBusy || this.typing !== null || isDrawing;
  }

  /** Shows what the state asks for. */
  async take() {
    byId("plan-step").setAttribute("aria-pressed", String(this.isStepShown));
    if (!this.isOpen || document.documentElement.dataset.spoken)
      void this.waiting.until(this.traffic.take());
    if (!this.isOpen) await this.waiting.until(this._showStep());
    else if (document.documentElement.dataset.spoken)
      await Promise.all([this.waiting.until(this._ask()), this.search.take(), this.pins.take()]);
  }

  _listen() {
    byId("plan-step").addEventListener("click", () => this.host.step(this.isStepShown ? "" : "1"));
    for (const field of PLAN_FIELDS) {
      const control = fieldOf(field);
      const change = () => {
        const plan_assumed = stillAssumed(this.state, field);
        this._edit({ [field]: control.value.trim(), plan_assumed }, field);
      };
      control.addEventListener("input", change);
      control.addEventListener("focusout", () => this.host.store.leaveField());
    }
    byId("plan").addEventListener("pointermove", (event) => this._point(event));
    byId("plan").addEventListener("pointerleave", hideTip);
    new ResizeObserver(() => this.redraw.request()).observe(byId("plan-frame"));
    onThemeChange(() => this.redraw.request());
  }

  /** @param {Partial<PlanState>} change @param {PlanField} field */
  _edit(change, field) {
    this.host.store.step(change, field);
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      this.typing = null;
      void this.take();
    }, TYPING_MS);
  }

  async _ask() {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      if (!this.hasOffers) this._offer(await askDocument("plans"));
      this._fill();
      const asked = `plan?${this.host.question(planWords(this.state))}`;
      this.answer = await askDocument(asked, signal);
      this._blame("", "");
      void this.waiting.until(this._showStep());
      void this.waiting.until(this._askMatrix(signal));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this._blame(error.message, planField(error.field));
    }
    this._show();
  }

  /** Asks who sends how much to whom in the plan in view. @param {AbortSignal} signal */
  async _askMatrix(signal) {
    try {
      const asked = this.host.question(planWords(this.state));
      this.matrix.show(await askDocument(`plan/matrix?${asked}`, signal));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.matrix.show(null);
    }
  }

  /** Shows the step of the plan as a timeline, where that is asked for. */
  async _showStep() {
    const words = this.isStepShown ? stepWords(this.host.question(planWords(this.state))) : "";
    byId("plan-step-alert").textContent = "";
    try {
      await this.host.timeline(words);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      byId("plan-step-alert").textContent = error.message;
    }
  }

  /** @param {Record<string, string[]>} offers */
  _offer({ models, clusters, recompute, compute, schedules }) {
    this.hasOffers = true;
    const options = (/** @type {string[]} */ names) =>
      names.map((name) => make("option", { value: name }, name));
    byId("plan-models").replaceChildren(...options(models));
    byId("plan-clusters").replaceChildren(...options(clusters));
    byId("plan-recomputes").replaceChildren(...options(recompute));
    byId("plan-schedules").replaceChildren(...options(schedules));
    byId("plan-compute").append(...options(compute));
  }

  /** Shows the state in the fields, but for the one that is typed into. */
  _fill() {
    for (const field of PLAN_FIELDS) {
      const control = fieldOf(field);
      if (document.activeElement !== control) control.value = this.state[field];
      const label = /** @type {HTMLElement} */ (control.previousElementSibling);
      label.dataset.note = isAssumed(this.state, field) ? t("plan.assumed") : "";
      const isWide = this.state[field].length > MOST_LETTERS;
      control.closest(".field")?.classList.toggle("wide", isWide);
    }
    // Whatever is assumed within is said of the whole while it is folded.
    const isAny = byId("plan-rest").querySelector('[data-note]:not([data-note=""])');
    byId("plan-rest-name").dataset.folded = isAny ? t("plan.assumed") : "";
  }

  /**
   * Says what was wrong beside its field, or above the plan where it is of no field.
   * @param {string} sentence
   * @param {string} field
   */
  _blame(sentence, field) {
    byId("plan-alert").textContent = field ? "" : sentence;
    byId("plan-section").classList.toggle("stale", Boolean(sentence));
    for (const each of PLAN_FIELDS) {
      const isWrong = each === field;
      byId(`plan-fault-${each}`).textContent = isWrong ? sentence : "";
      if (isWrong) unfold(fieldOf(each)).setAttribute("aria-invalid", "true");
      else fieldOf(each).removeAttribute("aria-invalid");
    }
  }

  _show() {
    const { answer } = this;
    byId("plan-told").hidden = byId("plan-pictures").hidden = !answer;
    byId("plan-tables").hidden = !answer;
    if (!answer) return;
    byId("plan-verdict").textContent = answer.verdict;
    byId("plan-verdict").classList.toggle("fault", !answer.fits);
    byId("plan-time-verdict").textContent = answer.time.verdict;
    byId("plan-job").textContent = jobText(answer, this.state);
    byId("plan-mfu").textContent = mfuText(answer);
    byId("plan-memory-key").replaceChildren(...memoryKey(answer));
    byId("plan-memory-rows").replaceChildren(...memoryRows(answer));
    byId("plan-time-rows").replaceChildren(...timeRows(answer));
    byId("plan-traffic-rows").replaceChildren(...trafficRows(answer));
    byId("plan-traffic").hidden = !answer.traffic.length;
    byId("plan-command").textContent = answer.command;
    byId("plan").setAttribute("aria-label", `${answer.verdict} ${answer.time.verdict}`);
    this.redraw.request();
  }

  _draw() {
    const { answer, isOpen } = this;
    if (!isOpen || !answer) return;
    this.surface.resize();
    const { width, height } = this.surface;
    paintPlan({
      context: this.surface.begin(),
      width,
      height,
      plan: answer,
      theme: theme(),
      card: t("plan.card", { size: bytesText(Math.min(...answer.memory.map((at) => at.card))) }),
      estimated: t("plan.estimated"),
      above: byId("plan-memory-head").offsetHeight,
    });
  }

  /** Tells of what is pointed at. @param {MouseEvent} event */
  _point(event) {
    const { answer } = this;
    const found = answer && foundAt(answer, this.surface, this.surface.point(event));
    if (!answer || !found) return hideTip();
    showTip(placeLines(answer, found.place), event.clientX, event.clientY);
  }
}

/** @param {PlanField} field */
function fieldOf(field) {
  return /** @type {HTMLInputElement | HTMLSelectElement} */ (byId(`plan-${field}`));
}
