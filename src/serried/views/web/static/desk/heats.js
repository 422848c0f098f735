// The desk of figures on the map: which figure of the trace colours the ranks, its legend, who
// stands out.

import { byId, make } from "../base/dom.js";
import { has, language, t } from "../base/i18n.js";
import { Refusal, askPayload } from "../base/questions.js";
import { onThemeChange } from "../base/theme.js";
import { Heat } from "../map/heat.js";
import { planWords } from "../plan/state.js";
import { findings } from "./checks.js";
import { question } from "./state/fields.js";

/** What names a figure of the plan, and those that it has. */
const PLAN = "plan.";
const PLANNED = ["memory", "memory_share", "sent", "sent_across"];

/** Holds the figure in view; the state is the page's. */
export class HeatDesk {
  /**
   * @param {import("./layout.js").LayoutDesk} layout
   * @param {import("./runs.js").Runs} runs
   * @param {import("./selection.js").Selection} selection
   * @param {import("../map/view.js").MapView} map
   * @param {() => Heat | null} over  what colours the map in place of a figure
   */
  constructor(layout, runs, selection, map, over) {
    this.layout = layout;
    this.store = layout.store;
    this.runs = runs;
    this.selection = selection;
    this.map = map;
    this.over = over;
    /** @type {Heat | null} */
    this.heat = null;
    /** The figures of the trace in view, once they are known. @type {string[]} */
    this.figures = [];
    /** What was answered last, and what was asked last: trace and figure. */
    this.answered = this.newest = "";
    /** Why there is no heat. */
    this.refusal = "";
    /** The trace whose figures are known. */
    this.trace = -1;
    this.asked = 0;
    byId("heat").addEventListener("change", (event) => {
      const figure = /** @type {HTMLSelectElement} */ (event.target).value;
      this.store.step({ heat: figure });
      void this.take();
    });
    onThemeChange(() => this.show());
    document.addEventListener("spoken", () => void this._retell());
  }

  get isBusy() {
    return this.asked > 0;
  }

  /** What fills cells that show one thing, where no figure does: "", stage, or groups. */
  get choice() {
    const { heat } = this.store.state;
    return heat === "stage" || heat.startsWith("group:") ? heat : "";
  }

  /** What the figure in view is of: a report of a check, or the trace. */
  get source() {
    return this.runs.checks.of(this.store.state.heat)?.check ?? this.runs.offer;
  }

  /** Whether the map shows the layout of what was measured, so that its ranks are those. */
  get isOwn() {
    return this.runs.isOwn(this.source);
  }

  /**
   * Shows the figure that the state names; asks for it, and once for each trace what figures it
   * has.
   */
  async take() {
    const { heat: figure } = this.store.state;
    const { checks, trace } = this.runs;
    const check = checks.of(figure);
    const of = (/** @type {string} */ name) =>
      `trace/heat?trace=${trace}&figure=${encodeURIComponent(name)}`;
    if (trace >= 0 && trace !== this.trace) await this._ask(of(""), trace);
    const asked = check
      ? `check/heat?check=${check.number}&figure=${check.figure}`
      : isPlanned(figure)
        ? `plan/heat?${this.question(figure.slice(PLAN.length))}`
        : trace >= 0 && figure && !this.choice
          ? of(figure)
          : "";
    const isOfTrace = !check && !isPlanned(figure);
    if (asked && asked !== this.answered) await this._ask(asked, isOfTrace ? trace : null);
    this.show();
  }

  /** Says everything in another language, in which a refusal has to be asked for. */
  async _retell() {
    if (this.refusal) this.answered = "";
    if (this.refusal) await this.take();
    else this.show();
  }

  /**
   * Asks for a figure, of a trace unless `trace` is null.
   * @param {string} asked
   * @param {number | null} trace
   */
  async _ask(asked, trace) {
    this.asked++;
    this.newest = asked;
    try {
      const told = asked.includes("lang=") ? "" : `&lang=${language()}`;
      const heat = new Heat(await askPayload(asked + told));
      if (this.newest !== asked) return;
      if (trace === null) heat.figure = this.store.state.heat;
      else Object.assign(this, { trace, figures: heat.figures });
      Object.assign(this, { heat, answered: asked, refusal: "" });
    } catch (error) {
      if (!(error instanceof Refusal)) return this.layout.fail(error);
      if (trace !== null)
        Object.assign(this, { trace, figures: this.trace === trace ? this.figures : [] });
      Object.assign(this, { heat: null, answered: asked, refusal: error.message });
    } finally {
      this.asked--;
    }
  }

  /** Returns what to say of a rank, "" where no figure is in view. @param {number} rank */
  line(rank) {
    const heat = this.shown;
    if (!heat || Number.isNaN(heat.values[rank] ?? NaN)) return "";
    return t("heat.line", {
      figure: figureName(heat.figure),
      value: heat.text(heat.values[rank]),
      difference: heat.difference(heat.values[rank]),
    });
  }

  /** The figure on the map now. */
  get shown() {
    const { heat: figure } = this.store.state;
    const isFit = isPlanned(figure)
      ? this.heat?.values.length === this.layout.scene?.worldSize
      : this.isOwn;
    return this.heat?.figure === figure && isFit ? this.heat : null;
  }

  /** Fills the chooser. */
  _offer() {
    const select = /** @type {HTMLSelectElement} */ (byId("heat"));
    const { heat } = this.store.state;
    const { checks } = this.runs;
    const isMore = heat && !this.choice && !isPlanned(heat);
    const isOther = isMore && !this.figures.includes(heat) && !checks.of(heat);
    const names = isOther ? [...this.figures, heat] : this.figures;
    const option = (/** @type {string} */ name) =>
      make("option", { value: name, title: figureMeaning(name) }, figureName(name));
    const reports = checks.choices(option);
    const plan = PLANNED.map((name) => option(`plan.${name}`));
    select.replaceChildren(
      make("option", { value: "" }, t("heat.none")),
      ...this._groups(),
      ...(names.length ? [make("optgroup", { label: t("heat.run") }, ...names.map(option))] : []),
      make("optgroup", { label: t("heat.plan") }, ...plan),
      ...reports,
    );
    select.value = heat;
  }

  /** Offers stages and the groups in view. */
  _groups() {
    const { scene } = this.layout;
    const found = (scene?.kinds ?? []).map(({ dim, kind, label }) => {
      const name = t("heat.group", { kind: label });
      return make("option", { value: `group:${dim || kind}` }, name);
    });
    if ((scene?.job.num_stages ?? 1) > 1)
      found.unshift(make("option", { value: "stage" }, t("heat.stage")));
    const { choice } = this;
    if (choice && !found.some((each) => each.getAttribute("value") === choice))
      found.push(make("option", { value: choice }, choice));
    return found;
  }

  /** Shows anew what is known, in the language, the colours and beside the layout in use. */
  show() {
    this._offer();
    const { shown } = this;
    const { heat: figure } = this.store.state;
    shown?.measure(this.store.state.scale);
    this.map.warm(this.over() ?? shown, this.choice);
    byId("heat-panel").hidden = !figure || Boolean(this.choice);
    if (!figure || this.choice) return panel();
    if (this.refusal) panel(make("p", { class: "note" }, this.refusal));
    else if (!this.isOwn && !isPlanned(figure)) {
      const check = this.runs.checks.of(figure)?.check;
      const button = make(
        "button",
        { type: "button", click: () => this.runs.showOwnLayout(check) },
        t(check ? "check.own_layout" : "timeline.own_layout"),
      );
      panel(
        make("p", { class: "note" }, t(check ? "check.other_layout" : "heat.other_layout")),
        button,
      );
    } else if (shown) panel(...this._legend(shown));
  }

  /** Returns the words that ask for a figure of the plan. @param {string} figure */
  question(figure) {
    const { state } = this.store;
    return question(state, language(), { ...planWords(state), figure });
  }

  /**
   * Returns what the figure is, and who stands out; its scale stands below the map.
   * @param {Heat} heat
   */
  _legend(heat) {
    const rows = heat.outliers.map(({ rank, value }) => {
      const button = make(
        "button",
        { type: "button", class: "rank", click: () => this._open(rank) },
        String(rank),
      );
      return make(
        "tr",
        {},
        make("th", { scope: "row" }, button),
        make("td", {}, heat.text(value)),
        make("td", {}, heat.difference(value)),
      );
    });
    const list = rows.length
      ? [
          make("h4", {}, t("heat.farthest")),
          make("table", { class: "farthest" }, make("tbody", {}, ...rows)),
        ]
      : [make("p", { class: "note" }, t("heat.equal"))];
    const check = this.runs.checks.of(heat.figure)?.check;
    const found = check ? findings(check, (rank) => this._open(rank)) : [];
    return [
      make("p", {}, make("b", {}, figureName(heat.figure)), ` · ${figureMeaning(heat.figure)}`),
      ...found,
      ...list,
    ];
  }

  /** Chooses a rank, and opens the timeline at it where there is one. @param {number} rank */
  _open(rank) {
    this.selection.choose(rank);
    if (this.runs.offer) byId("timeline").focus({ preventScroll: true });
  }
}

/** Tells whether a figure is one of the plan. @param {string} figure */
function isPlanned(figure) {
  return figure.startsWith(PLAN);
}

/** @param {...Node} children */
function panel(...children) {
  /** @type {HTMLElement} */ (byId("heat-panel").querySelector("div")).replaceChildren(...children);
}

/** Names a figure. @param {string} figure */
export function figureName(figure) {
  const name = plain(figure);
  return has(`figure.${name}`) ? t(`figure.${name}`) : name;
}

/** @param {string} figure */
function figureMeaning(figure) {
  const name = plain(figure);
  return has(`figure.${name}_title`) ? t(`figure.${name}_title`) : "";
}

/** Returns a figure's name without the report that it is of. @param {string} figure */
function plain(figure) {
  return figure.slice(figure.indexOf(".") + 1);
}
