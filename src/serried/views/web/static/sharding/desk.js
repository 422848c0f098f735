// The desk of the ZeRO panel: what every rank holds under the job's stage, and a step of it.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId, make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { Playback } from "../base/playback.js";
import { Refusal, askDocument } from "../base/questions.js";
import { onThemeChange, theme } from "../base/theme.js";
import { Waiting } from "../base/waiting.js";
import { eventAt, paintSharding } from "./paint.js";
import { showRecorded } from "./recorded.js";
import { eventOf, wordsOf } from "./state.js";
import { eventLine, factsOf, momentLine, movedText, pricedText } from "./words.js";

/** @typedef {import("./sharded.js").ShardingAnswer} ShardingAnswer */
/** @typedef {import("./state.js").ShardingState} ShardingState */
/** @typedef {import("./state.js").ShardingField} ShardingField */
/**
 * @typedef {object} ShardingHost  the page around the panel
 * @property {import("../base/store.js").Part<ShardingState & {zero: string}>} store
 * @property {(words: Record<string, string>) => string} question  about the job in view
 * @property {(zero: string) => void} stage                        makes it the job's ZeRO stage
 * @property {() => Record<string, string>} model  the words of the job's plan
 * @property {() => number} planned  the trace in view where its plan is there too, else -1
 */

const TYPING_MS = 220;
const FIELDS = /** @type {const} */ (["parameters", "layers", "accumulated"]);

/** Holds the panel together; its state is the page's. */
export class ShardingDesk {
  /** @param {ShardingHost} host */
  constructor(host) {
    this.host = host;
    /** @type {ShardingAnswer | null} */
    this.answer = null;
    this.asking = new AbortController();
    this.playback = new Playback();
    this.surface = new Surface(byId("sharding"), byId("sharding-frame"));
    this.redraw = new Redraw(() => this._draw());
    this.waiting = new Waiting((error) => {
      console.error(error);
      byId("sharding-alert").textContent = t("error.server");
    });
    /** @type {number | null} */
    this.typing = null;
    this.before = 0;
    this._listen();
  }

  get state() {
    return this.host.store.state;
  }

  get isOpen() {
    return this.state.sharded === "1";
  }

  get isBusy() {
    return (
      this.waiting.isBusy ||
      this.typing !== null ||
      (this.redraw.waiting && !this.playback.isPlaying)
    );
  }

  get step() {
    return this.answer?.step ?? null;
  }

  /** How many events are over. */
  get done() {
    return Math.floor(this.playback.time + 1e-9);
  }

  /** Shows what the state asks for. */
  async take() {
    byId("sharding-section").hidden = !this.isOpen;
    byId("sharding-open").setAttribute("aria-pressed", String(this.isOpen));
    if (this.isOpen && document.documentElement.dataset.spoken)
      await this.waiting.until(this._ask());
  }

  _listen() {
    byId("sharding-close").addEventListener("click", () => this._edit({ sharded: "", event: "" }));
    for (const field of FIELDS) {
      const input = /** @type {HTMLInputElement} */ (byId(`sharding-${field}`));
      const change = () =>
        this._edit({ ...this._own(), [field]: input.value.trim(), event: "" }, field);
      input.addEventListener("input", change);
      input.addEventListener("focusout", () => this.host.store.leaveField());
    }
    onChoice("sharding-precision", (precision) =>
      this._edit({ ...this._own(), precision, event: "" }),
    );
    byId("sharding-priced").addEventListener("click", () =>
      this._edit({ zero_priced: this.state.zero_priced ? "" : "plan", event: "" }),
    );
    onChoice("sharding-stage", (zero) => this.host.stage(zero));
    const slider = /** @type {HTMLInputElement} */ (byId("sharding-slider"));
    slider.addEventListener("input", () => this._seek(Number(slider.value)));
    byId("sharding-play").addEventListener("click", () => this._toggle());
    byId("sharding-back").addEventListener("click", () => this._seek(this.done - 1));
    byId("sharding-forward").addEventListener("click", () => this._seek(this.done + 1));
    byId("sharding-section").addEventListener("keydown", (event) => this._key(event));
    byId("sharding").addEventListener("click", (event) => {
      const { x, y } = this.surface.point(event);
      const found = eventAt(x, y, this.surface, this.step?.events.length ?? 0);
      if (found >= 0) this._seek(found);
    });
    new ResizeObserver(() => this.redraw.request()).observe(byId("sharding-frame"));
    onThemeChange(() => this.redraw.request());
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches("input:not([type=range]), select")) return;
    const last = this.step?.events.length ?? 0;
    const to = { ArrowLeft: this.done - 1, ArrowRight: this.done + 1, Home: 0, End: last };
    const moment = /** @type {Record<string, number>} */ (to)[event.key];
    if (event.key === " " && !target.matches("button, summary")) this._toggle();
    else if (moment !== undefined) this._seek(moment);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Partial<ShardingState>} change @param {string} [field] */
  _edit(change, field = "") {
    this.host.store.step(change, field);
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(
      () => {
        this.typing = null;
        void this.take();
      },
      field ? TYPING_MS : 0,
    );
  }

  async _ask() {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const asked = `sharding?${this.host.question(wordsOf(this.state, this.host.model()))}`;
      this.answer = await askDocument(asked, signal);
      byId("sharding-alert").textContent = "";
      const trace = this.host.planned();
      const recorded = `trace/sharding?trace=${trace}&lang=${language()}`;
      showRecorded(trace < 0 ? null : await askDocument(recorded, signal));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      byId("sharding-alert").textContent = error.message;
    }
    this._show();
  }

  /**
   * Returns what is in the fields while the plan fills them, to go on from there.
   * @returns {Partial<ShardingState>}
   */
  _own() {
    const { planned } = this.answer ?? {};
    return this.state.zero_priced && planned ? { ...fieldsOf(planned), zero_priced: "" } : {};
  }

  _show() {
    const { answer, step } = this;
    const shown = { ...this.state, ...(answer?.planned ? fieldsOf(answer.planned) : {}) };
    byId("sharding-priced").setAttribute("aria-pressed", String(Boolean(this.state.zero_priced)));
    byId("sharding-priced-told").textContent = pricedText(answer?.planned);
    const count = step?.events.length ?? 0;
    this.playback.take([Array.from({ length: count }, (_, i) => i + 1)]);
    this.playback.seek(eventOf(this.state.event, count));
    /** @type {HTMLInputElement} */ (byId("sharding-slider")).max = String(count);
    for (const field of FIELDS) {
      const input = /** @type {HTMLInputElement} */ (byId(`sharding-${field}`));
      if (document.activeElement !== input) input.value = shown[field];
    }
    fill("sharding-stage", ["", "0", "1", "2", "3"], this.state.zero);
    const recipes = (answer?.precisions ?? []).map(({ name }) => name);
    fill("sharding-precision", recipes, shown.precision || recipes[0]);
    const { sharding } = answer ?? {};
    byId("sharding-verdict").textContent = answer?.verdict ?? "";
    byId("sharding-step-verdict").textContent = step?.verdict ?? "";
    byId("sharding-spelled").textContent = [
      sharding?.spelled ? t("sharding.spelled", { words: sharding.spelled }) : "",
      ...(sharding?.notes ?? []),
    ].join(" ");
    const lines = step?.events.map((event, i) =>
      make("li", { value: i + 1 }, eventLine(event, answer?.planned?.event_s[i])),
    );
    byId("sharding-events").replaceChildren(...(lines ?? []));
    this.redraw.request();
  }

  _toggle() {
    this.playback.toggle();
    this.before = 0;
    this.redraw.request();
  }

  /** @param {number} done */
  _seek(done) {
    this.playback.seek(done);
    this.host.store.soon({ event: this.done ? String(this.done) : "" });
    this.redraw.request();
  }

  /** Draws the moment, and asks for the next while it runs. */
  _draw() {
    const { answer, isOpen, playback, step } = this;
    if (!isOpen || !answer) return;
    const now = performance.now();
    if (playback.isPlaying) {
      playback.pass(this.before ? (now - this.before) / 1000 : 0);
      this.before = now;
      if (playback.isPlaying) this.redraw.request();
      else this._seek(this.done);
    }
    this._tell();
    this.surface.resize();
    const { width, height } = this.surface;
    paintSharding({
      context: this.surface.begin(),
      width,
      height,
      answer,
      done: this.done,
      theme: theme(),
      say: (name, value) => {
        if (name === "rank") return t("timeline.rank", { rank: value });
        if (name === "more") return t("sharding.more", { count: value });
        return step ? movedText(step.events[value], answer.planned?.event_s[value]) : "";
      },
    });
  }

  /** Tells the moment in words, and shows it in the controls. */
  _tell() {
    const { done, playback, step } = this;
    byId("sharding-transport").hidden = byId("sharding-list").hidden = !step;
    const facts = step ? factsOf(step, done) : [];
    const line = step ? momentLine(step, done) : "";
    const told = [language(), line, ...facts.map(({ value }) => value)].join(" · ");
    const slider = /** @type {HTMLInputElement} */ (byId("sharding-slider"));
    slider.value = String(done);
    byId("sharding-play").dataset.playing = String(playback.isPlaying);
    const label = t(playback.isPlaying ? "collective.pause" : "collective.play");
    byId("sharding-play").setAttribute("aria-label", label);
    if (byId("sharding-frame").dataset.told === told) return;
    byId("sharding-frame").dataset.told = told;
    slider.setAttribute("aria-valuetext", line);
    byId("sharding").setAttribute("aria-label", told);
    byId("sharding-moment").textContent = line;
    byId("sharding-now").textContent = `${done} / ${step?.events.length ?? 0}`;
    byId("sharding-facts").replaceChildren(
      ...facts.map(({ term, value }) =>
        make("div", {}, make("dt", {}, t(`sharding.${term}`)), make("dd", {}, value)),
      ),
    );
    byId("sharding-events").querySelector("[aria-current]")?.removeAttribute("aria-current");
    byId("sharding-events").children[done - 1]?.setAttribute("aria-current", "step");
  }
}

/** Returns a plan's sizes as the fields hold them. */
/** @param {import("./sharded.js").Priced} planned */
function fieldsOf({ layers, microbatches, parameters, precision }) {
  return {
    parameters: String(parameters),
    layers: String(layers),
    accumulated: String(microbatches),
    precision,
  };
}

/** @param {string} id @param {(value: string) => void} act */
function onChoice(id, act) {
  const select = /** @type {HTMLSelectElement} */ (byId(id));
  select.addEventListener("change", () => act(select.value));
}

/** @param {string} id @param {string[]} values @param {string} chosen */
function fill(id, values, chosen) {
  const options = values.map((value) =>
    make("option", { value, selected: value === chosen }, value || t("sharding.own")),
  );
  byId(id).replaceChildren(...options);
}
