// The search of the Plan panel: the best layouts as a table and a picture; the one that is picked
// becomes the job's, and map, groups and plan follow.

import { say } from "../base/announcer.js";
import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { Refusal, askDocument } from "../base/questions.js";
import { onThemeChange, theme } from "../base/theme.js";
import { hideTip, showTip } from "../base/tip.js";
import { Waiting } from "../base/waiting.js";
import { changeOf, isPicked, layoutName, marksOf, rowsOf, scheduleName } from "./found.js";
import { dotAt, dotBeside, dotsOf, paintFront } from "./front.js";
import { planWords } from "./state.js";
import { secondsText } from "./words.js";

/** @typedef {import("./found.js").FoundAnswer} FoundAnswer */
/** @typedef {import("./found.js").FoundLayout} FoundLayout */

const HEADS = ["layout", "schedule", "micro_batch", "zero", "recompute", "step", "memory", "why"];

/** @type {Record<string, {dx: number, dy: number}>} */
const ARROWS = {
  ArrowLeft: { dx: -1, dy: 0 },
  ArrowRight: { dx: 1, dy: 0 },
  ArrowUp: { dx: 0, dy: -1 },
  ArrowDown: { dx: 0, dy: 1 },
};

/** Words of the job and of the panel that a search keeps; it varies all others. */
const ASKED = new Set(
  "lang framework world_size set model cluster sequence global_batch compute".split(" "),
);

/**
 * Returns what picking a layout changes: the job, and the timeline, which shows its planned step.
 * @param {FoundLayout} layout
 */
function pickOf(layout) {
  return { ...changeOf(layout), planned_step: "1", slice: "", time: "", range: "" };
}

/** Holds the newest answer of a search. */
export class PlanSearch {
  /** @param {import("./state.js").PlanHost} host */
  constructor(host) {
    this.host = host;
    /** @type {FoundAnswer | null} */
    this.found = null;
    this.asked = "";
    this.asking = new AbortController();
    this.surface = new Surface(byId("plan-front"), byId("plan-front-frame"));
    this.redraw = new Redraw(() => this._draw());
    this.waiting = new Waiting((error) => {
      console.error(error);
      byId("plan-found-alert").textContent = t("error.server");
    });
    byId("plan-search").addEventListener("click", () =>
      host.pick({ searched: this.isOpen ? "" : "1" }),
    );
    /** @type {import("./found.js").Mark[]} */
    this.marks = [];
    /** The layout that is pointed at, by pointer or keys. @type {FoundLayout | null} */
    this.pointed = null;
    const front = byId("plan-front");
    front.addEventListener("pointermove", (event) =>
      this._point(dotAt(this._dots(), this.surface.point(event))),
    );
    front.addEventListener("pointerleave", () => this._point(null));
    front.addEventListener("blur", () => this._point(null));
    front.addEventListener("click", (event) =>
      this._choose(dotAt(this._dots(), this.surface.point(event))?.layout),
    );
    front.addEventListener("keydown", (event) => this._key(event));
    new ResizeObserver(() => this.redraw.request()).observe(byId("plan-front-frame"));
    onThemeChange(() => this.redraw.request());
  }

  get isOpen() {
    return this.host.store.state.searched === "1";
  }

  get isBusy() {
    return this.waiting.isBusy || this.redraw.waiting;
  }

  /** Shows what the state asks for; a search that was answered is not asked for again. */
  async take() {
    byId("plan-found").hidden = !this.isOpen;
    byId("plan-search").setAttribute("aria-pressed", String(this.isOpen));
    if (this.isOpen) await this.waiting.until(this._ask());
  }

  async _ask() {
    const all = new URLSearchParams(this.host.question(planWords(this.host.store.state)));
    const question = String(new URLSearchParams([...all].filter(([name]) => ASKED.has(name))));
    if (question !== this.asked) {
      this.asking.abort();
      this.asking = new AbortController();
      const { signal } = this.asking;
      try {
        this.found = await askDocument(`search?${question}`, signal);
        this.asked = question;
        this.marks = this.found?.best.length ? marksOf(this.found) : [];
        this.pointed = null;
        byId("plan-found-alert").textContent = "";
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Refusal)) throw error;
        byId("plan-found-alert").textContent = error.message;
      }
    }
    this._show();
  }

  _show() {
    const { found } = this;
    byId("plan-front-frame").hidden = !found?.best.length;
    if (!found) return;
    byId("plan-found-verdict").textContent = found.verdict;
    byId("plan-found-command").textContent = found.command;
    byId("plan-front").setAttribute("aria-label", found.verdict);
    const heads = HEADS.map((head) => make("th", { scope: "col" }, t(`plan.${head}`)));
    byId("plan-found-rows").replaceChildren(
      make("tr", {}, ...heads),
      ...rowsOf(found).map((layout) => this._row(layout)),
    );
    this.redraw.request();
  }

  /** @param {FoundLayout} layout */
  _row(layout) {
    const { asked, peak_bytes: peak, step_s: step, why_not: why } = layout;
    const pick = make(
      "button",
      {
        type: "button",
        "aria-pressed": String(isPicked(this._state(), layout)),
        title: t("plan.pick"),
        click: () => this._choose(layout),
      },
      layoutName(layout),
    );
    const cells = [
      scheduleName(layout),
      String(asked.micro_batch),
      String(asked.zero),
      this.found?.words.recompute[asked.recompute.kind] ?? asked.recompute.kind,
      secondsText(step),
      bytesText(peak),
      why,
    ];
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, pick),
      ...cells.map((text) => make("td", {}, text)),
    );
  }

  _state() {
    return /** @type {Record<string, string>} */ (/** @type {unknown} */ (this.host.store.state));
  }

  _dots() {
    return dotsOf(this.marks, this.surface);
  }

  _draw() {
    const { found, isOpen } = this;
    if (!isOpen || !found?.best.length) return;
    this.surface.resize();
    paintFront(this.surface.begin(), this._dots(), this.surface, theme(), {
      card: t("plan.card", { size: bytesText(found.best[0].card_bytes) }),
      step: t("plan.front_step"),
      memory: t("plan.front_memory"),
      front: t("plan.front"),
      isPicked: (layout) => isPicked(this._state(), layout),
      pointed: this.pointed,
    });
  }

  /** Tells of a layout, null of none. @param {import("./front.js").Dot | null} dot */
  _point(dot) {
    if ((dot?.layout ?? null) !== this.pointed) this.redraw.request();
    this.pointed = dot?.layout ?? null;
    if (!dot) return hideTip();
    const { left, top } = byId("plan-front").getBoundingClientRect();
    const lines = this._lines(dot.layout);
    showTip(lines, left + dot.x, top + dot.y);
    return say(lines.join(" · "));
  }

  /** @param {FoundLayout} layout */
  _lines(layout) {
    const { micro_batch: micro, recompute, zero } = layout.asked;
    const kind = this.found?.words.recompute[recompute.kind] ?? recompute.kind;
    return [
      `${layoutName(layout)}, ${scheduleName(layout)}`,
      t("plan.manner", { micro, zero, recompute: kind }),
      `${secondsText(layout.step_s)}, ${bytesText(layout.peak_bytes)}`,
    ];
  }

  /** @param {FoundLayout | null | undefined} layout */
  _choose(layout) {
    if (layout) this.host.pick(pickOf(layout));
  }

  /** Moves to another layout by arrows, and picks it by Enter. @param {KeyboardEvent} event */
  _key(event) {
    const way = ARROWS[event.key];
    const dots = this._dots();
    // Of the same layout in the cloud and on the front, the front's is meant.
    const from = dots.findLast(({ layout }) => layout === this.pointed) ?? null;
    if (way) this._point(dotBeside(dots, from, way));
    else if (event.key === "Enter" || event.key === " ") this._choose(this.pointed);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
