// The search of the Plan panel: the best layouts as a table and a picture; the one that is picked
// becomes the job's, and map, groups and plan follow.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { Refusal, askDocument } from "../base/questions.js";
import { Waiting } from "../base/waiting.js";
import { changeOf, isPicked, layoutName, rowsOf, scheduleName } from "./found.js";
import { FrontPicture } from "./picture.js";
import { planWords } from "./state.js";
import { secondsText } from "./words.js";

/** @typedef {import("./found.js").FoundAnswer} FoundAnswer */
/** @typedef {import("./found.js").FoundLayout} FoundLayout */

const HEADS = ["layout", "schedule", "micro_batch", "zero", "recompute", "step", "memory"];

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
    this.waiting = new Waiting((error) => {
      console.error(error);
      byId("plan-found-alert").textContent = t("error.server");
    });
    byId("plan-search").addEventListener("click", () =>
      host.pick({ searched: this.isOpen ? "" : "1" }),
    );
    this.picture = new FrontPicture(
      (layout) => this._choose(layout),
      (layout) => isPicked(this._state(), layout),
    );
  }

  get isOpen() {
    return this.host.store.state.searched === "1";
  }

  get isBusy() {
    return this.waiting.isBusy || this.picture.redraw.waiting;
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
    byId("plan-front-frame").hidden = true;
    if (!found) return;
    byId("plan-found-verdict").textContent = found.verdict;
    byId("plan-found-command").textContent = found.command;
    const isOrdered = rowsOf(found).some(({ asked }) => asked.order);
    const named = [...HEADS, ...(isOrdered ? ["order"] : []), "why"];
    const heads = named.map((head) => make("th", { scope: "col" }, t(`plan.${head}`)));
    byId("plan-found-rows").replaceChildren(
      make("tr", {}, ...heads),
      ...rowsOf(found).map((layout) => this._row(layout, isOrdered)),
    );
    this.picture.show(found);
  }

  /** @param {FoundLayout} layout @param {boolean} isOrdered */
  _row(layout, isOrdered) {
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
      ...(isOrdered ? [asked.order] : []),
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

  /** @param {FoundLayout} layout */
  _choose(layout) {
    this.host.pick(pickOf(layout));
  }
}
