// The tabs of the page: each is a view of the same job and the same selection, at its own address.

import { byId, make } from "../base/dom.js";
import { has, t } from "../base/i18n.js";
import { TABS } from "../base/tabs.js";
import { hideTip } from "../base/tip.js";
import { EXAMPLE } from "../diagnose/state.js";
import { EXAMPLES, showExamples } from "./examples.js";
import { Tour } from "./tour.js";

/**
 * @typedef {import("./examples.js").Shown & {
 *   store: import("../base/store.js").Store<import("./state/fields.js").State>,
 *   plan: {take(): Promise<unknown>},
 *   schedules: {take(): Promise<unknown>},
 *   selection: import("./selection.js").Selection,
 *   learn: {take(): Promise<unknown>},
 *   opener?: {diagnose(): boolean, isBusy: boolean},
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
      diagnose: !page.diagnosis.shown && (!page.diagnosis.cases.length || this._isElsewhere),
    };
    if (view === "diagnose" && isAbsent.diagnose && !this._isElsewhere && page.opener?.diagnose())
      isAbsent.diagnose = false;
    const absent = /** @type {Record<string, boolean>} */ (isAbsent)[view] ?? false;
    byId("absent").hidden = !absent;
    byId("absent").replaceChildren(...(absent && has(`absent.${view}`) ? this._absent() : []));
    page.selection.column.show();
    void page.schedules.take();
    void page.learn.take();
  }

  /** Whether the address names a diagnosis that is neither open here nor of the run in view. */
  get _isElsewhere() {
    const { store, diagnosis, runs, opener } = this.page;
    const { diagnosed } = store.state;
    if (!diagnosed || diagnosed === EXAMPLE || opener?.isBusy) return false;
    return !diagnosis.shown && diagnosed !== runs.offer?.name;
  }

  /** Says how something comes into an empty tab; of a hang there is an example. */
  _absent() {
    const told = t(`absent.${this.view}`);
    if (this.view !== "diagnose") return [told];
    const { page } = this;
    const hang = choice(t("example.hang"), () => void page.visit(EXAMPLES.hang));
    if (!this._isElsewhere) return [told, " ", hang];
    const other = t("absent.other", { name: page.store.state.diagnosed });
    const cases = page.diagnosis.cases.map(({ name }) =>
      choice(name, () => page.diagnosis.show(name)),
    );
    const { offer } = page.runs;
    if (offer?.has_evidence && !cases.length)
      cases.push(choice(offer.name, () => this._diagnose()));
    const ways = cases.length ? [t("absent.open"), ...cases] : [told, hang];
    return [other, ...ways].flatMap((each) => [each, " "]);
  }

  /** Diagnoses the run in view in place of what the address names. */
  _diagnose() {
    this.page.store.step({ diagnosed: "" });
    this.show();
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

/** @param {string} name @param {() => void} click */
function choice(name, click) {
  return make("button", { type: "button", click }, name);
}
