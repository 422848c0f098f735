// The search of the Plan panel: the best layouts as a table and a picture; the one that is picked
// becomes the job's, and map, groups and plan follow.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { Refusal, askDocument } from "../base/questions.js";
import { onThemeChange, theme } from "../base/theme.js";
import { hideTip, showTip } from "../base/tip.js";
import { Waiting } from "../base/waiting.js";
import { changeOf, isPicked, layoutName, rowsOf, scheduleName } from "./found.js";
import { dotAt, paintFront } from "./front.js";
import { planWords } from "./state.js";
import { secondsText } from "./words.js";

/** @typedef {import("./found.js").FoundAnswer} FoundAnswer */
/** @typedef {import("./found.js").FoundLayout} FoundLayout */

const HEADS = ["layout", "schedule", "micro_batch", "zero", "recompute", "step", "memory", "why"];

/** Words of the job and of the panel that a search keeps; it varies all others. */
const ASKED = new Set(
  "lang framework world_size set model cluster sequence global_batch compute".split(" "),
);

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
    byId("plan-front").addEventListener("pointermove", (event) => this._point(event));
    byId("plan-front").addEventListener("pointerleave", hideTip);
    byId("plan-front").addEventListener("click", (event) => {
      const layout = this._at(event);
      if (layout) host.pick(changeOf(layout));
    });
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
        click: () => this.host.pick(changeOf(layout)),
      },
      layoutName(layout),
    );
    const cells = [
      scheduleName(layout),
      String(asked.micro_batch),
      String(asked.zero),
      asked.recompute.kind,
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

  _draw() {
    const { found, isOpen } = this;
    if (!isOpen || !found?.best.length) return;
    this.surface.resize();
    const steps = [...found.pareto, ...found.best].map(({ step_s: step }) => step);
    paintFront(this.surface.begin(), found, this.surface, theme(), {
      card: t("plan.card", { size: bytesText(found.best[0].card_bytes) }),
      first: `${t("plan.step")} ${secondsText(Math.min(...steps))}`,
      last: secondsText(Math.max(...steps)),
      isPicked: (layout) => isPicked(this._state(), layout),
    });
  }

  /** @param {MouseEvent} event */
  _at(event) {
    const { found } = this;
    return found?.best.length ? dotAt(found, this.surface, this.surface.point(event)) : null;
  }

  /** @param {MouseEvent} event */
  _point(event) {
    const layout = this._at(event);
    if (!layout) return hideTip();
    const lines = [
      `${layoutName(layout)}, ${scheduleName(layout)}`,
      `${secondsText(layout.step_s)}, ${bytesText(layout.peak_bytes)}`,
    ];
    showTip(lines, event.clientX, event.clientY);
  }
}
