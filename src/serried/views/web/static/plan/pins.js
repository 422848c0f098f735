// Two plans beside one another: one that is pinned and the one in view, or two that are pinned.

import { byId, make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { Refusal, askDocument } from "../base/questions.js";
import { Waiting } from "../base/waiting.js";
import { planWords, stepWords } from "./state.js";

/** @typedef {{name: string, a: string, b: string, differs: boolean, change: string}} ComparedRow */
/** @typedef {{verdict: string, asked: ComparedRow[], found: ComparedRow[]}} ComparedAnswer */
/** @typedef {"plan_a" | "plan_b"} Pin */

const PINS = /** @type {const} */ (["plan_a", "plan_b"]);

/** Holds what is pinned; the state is the page's. */
export class PlanPins {
  /** @param {import("./state.js").PlanHost} host */
  constructor(host) {
    this.host = host;
    this.asked = "";
    this.waiting = new Waiting((error) => console.error(error));
    for (const pin of PINS) byId(pin).addEventListener("click", () => this._toggle(pin));
    byId("plan-same").addEventListener("change", () => this._show());
    /** @type {ComparedAnswer | null} */
    this.answer = null;
  }

  get state() {
    return this.host.store.state;
  }

  /** The plan in view, as the words of its question. */
  get current() {
    return stepWords(this.host.question(planWords(this.state)));
  }

  /** The two that are compared, null where nothing is pinned. */
  get pair() {
    const { plan_a: a, plan_b: b } = this.state;
    return a || b ? { a: a || this.current, b: b || this.current } : null;
  }

  /** Shows what the state asks for. */
  async take() {
    for (const pin of PINS)
      byId(pin).setAttribute("aria-pressed", String(Boolean(this.state[pin])));
    byId("plan-compared").hidden = !this.pair;
    if (this.pair) await this.waiting.until(this._ask(this.pair));
  }

  /** Pins the plan in view, or lets go of what is pinned. @param {Pin} pin */
  async _toggle(pin) {
    this.host.store.step({ [pin]: this.state[pin] ? "" : this.current });
    await this.take();
    if (this.pair) byId("plan-compared").scrollIntoView({ block: "nearest" });
  }

  /** @param {{a: string, b: string}} pair */
  async _ask(pair) {
    const asked = String(new URLSearchParams({ ...pair, lang: language() }));
    if (asked !== this.asked) {
      this.asked = asked;
      try {
        const answer = await askDocument(`plan/compare?${asked}`);
        if (this.asked !== asked) return;
        this.answer = answer;
        byId("plan-compared-alert").textContent = "";
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        this.answer = null;
        byId("plan-compared-alert").textContent = error.message;
      }
    }
    this._show();
  }

  _show() {
    const { answer } = this;
    const field = /** @type {HTMLInputElement} */ (byId("plan-same"));
    byId("plan-compared-verdict").textContent = answer?.verdict ?? "";
    const shownOf = (/** @type {ComparedRow[]} */ rows) =>
      rows.filter(({ differs }) => differs || field.checked).map(rowOf);
    const asked = shownOf(answer?.asked ?? []);
    const found = shownOf(answer?.found ?? []);
    const estimated = make("th", { scope: "colgroup", colspan: 4 }, t("plan.estimated"));
    if (found.length) found.unshift(make("tr", {}, estimated));
    const shown = [...asked, ...found];
    const { plan_a: a, plan_b: b } = this.state;
    const named = [t("plan.what"), headOf("A", a), headOf("B", b), t("plan.change")];
    const heads = named.map((name) => make("th", { scope: "col" }, name));
    const none = make("tr", {}, make("td", { colspan: 4 }, t("plan.alike")));
    byId("plan-compared-rows").replaceChildren(
      make("tr", {}, ...heads),
      ...(shown.length ? shown : answer ? [none] : []),
    );
  }
}

/** @param {string} letter @param {string} pinned */
function headOf(letter, pinned) {
  return pinned ? letter : `${letter} (${t("plan.in_view")})`;
}

/** @param {ComparedRow} row */
function rowOf({ a, b, change, differs, name }) {
  const cells = [a, b, change].map((text) => make("td", {}, text));
  return make(
    "tr",
    { class: differs ? "differs" : "" },
    make("th", { scope: "row" }, name),
    ...cells,
  );
}
