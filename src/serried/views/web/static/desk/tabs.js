// The tabs of the page: each is a view of the same job and the same selection, at its own address.

import { byId, make } from "../base/dom.js";
import { has, t } from "../base/i18n.js";
import { TABS } from "../base/tabs.js";
import { hideTip } from "../base/tip.js";
import { EXAMPLES, showExamples } from "./examples.js";
import { Tour } from "./tour.js";

/**
 * @typedef {import("./examples.js").Shown & {
 *   store: import("../base/store.js").Store<import("./state/fields.js").State>,
 *   plan: {take(): Promise<unknown>},
 *   schedules: {take(): Promise<unknown>},
 *   selection: import("./selection.js").Selection,
 *   learn: {take(): Promise<unknown>},
 *   opener?: {diagnose(): boolean},
 * }} Tabbed  the page around the tabs
 */

/** The tabs whose form is a strip above the picture (style/strip.css). */
const STRIPS = ["plan", "run", "diagnose"];
/** Those where it becomes one beside the right column. */
const STRIPS_BESIDE = ["layout", "schedule", "learn"];
/** What a strip folds, so that it lies over the picture once it is opened. */
const FOLDED = ["examples", "plan-rest", "schedule-rest", "learn-rest"];

/** Turns the page from one tab to another. */
export class Tabs {
  /** @param {Tabbed} page */
  constructor(page) {
    this.page = page;
    this.tour = new Tour((search) => page.visit(search));
    for (const tab of TABS) byId(`view-${tab}`).addEventListener("click", () => this.open(tab));
    byId("left-toggle").addEventListener("click", () => this.toggleLeft());
    document.addEventListener("spoken", () => this.met());
    const beside = new MutationObserver(() => this._fold());
    beside.observe(byId("right"), { attributeFilter: ["hidden"], attributes: true });
  }

  /** The tab that is open. */
  get view() {
    return this.page.store.state.view;
  }

  /** Opens a tab, as a step of history. @param {string} view */
  open(view) {
    if (view === this.view) return;
    hideTip();
    const { page } = this;
    if (view === "diagnose" && !page.store.state.diagnosed && page.diagnosis.showFirst()) return;
    page.store.step({ view });
    this.show();
    void page.plan.take();
    void page.diagnosis.take();
  }

  /** Shows the tab, and the examples, once it is known what was served. */
  met() {
    this.show();
    showExamples(this.page, () => this.open("run"));
  }

  /** Shows which tab the state opens, and what there is to open. */
  show() {
    const { page, view } = this;
    const isOther = document.body.dataset.view !== view;
    document.body.dataset.view = view;
    if (isOther) this._fold();
    for (const tab of TABS) {
      const button = byId(`view-${tab}`);
      if (tab === view) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    const isAbsent = {
      run: !page.runs.isShown,
      diagnose: !page.diagnosis.cases.length && !page.diagnosis.shown,
    };
    if (view === "diagnose" && isAbsent.diagnose && page.opener?.diagnose())
      isAbsent.diagnose = false;
    const absent = /** @type {Record<string, boolean>} */ (isAbsent)[view] ?? false;
    byId("absent").hidden = !absent;
    byId("absent").replaceChildren(...(absent && has(`absent.${view}`) ? this._absent() : []));
    page.selection.column.show();
    void page.schedules.take();
    void page.learn.take();
  }

  /** Says how something comes into an empty tab; of a hang there is an example. */
  _absent() {
    const told = t(`absent.${this.view}`);
    if (this.view !== "diagnose") return [told];
    const open = () => void this.page.visit(EXAMPLES.hang);
    return [told, " ", make("button", { type: "button", click: open }, t("example.hang"))];
  }

  /** Lays the form as a strip or a column, and folds there what would lie over the picture. */
  _fold() {
    const { view } = this;
    const isStrip =
      STRIPS.includes(view) || (STRIPS_BESIDE.includes(view) && !byId("right").hidden);
    document.body.toggleAttribute("data-strip", isStrip);
    for (const id of FOLDED) /** @type {HTMLDetailsElement} */ (byId(id)).open = !isStrip;
    // A strip has room for what is often changed.
    const seldom = /** @type {HTMLElement} */ (byId("gpus_per_rank").closest("label"));
    byId(isStrip ? "sizes-more" : "sizes-ranks").append(seldom);
  }

  /** Shows the left column, or gives its room to the picture. */
  toggleLeft() {
    const left = byId("left");
    left.hidden = !left.hidden;
    byId("left-toggle").setAttribute("aria-expanded", String(!left.hidden));
  }
}
