// The right column: it appears with a selection, and holds one panel at a time behind its tabs.

import { byId } from "../../base/dom.js";
import { SIDES } from "../../base/tabs.js";

/** @typedef {import("../../base/tabs.js").TabState} TabState */

/** Shows and hides the column as the state and the selection ask. */
export class SideColumn {
  /** @param {import("../../base/store.js").Part<TabState>} store */
  constructor(store) {
    this.store = store;
    for (const side of SIDES) byId(`side-${side}`).addEventListener("click", () => this.turn(side));
    byId("right-close").addEventListener("click", () => this.turn("none"));
    byId("right-toggle").addEventListener("click", () => this.toggle());
    byId("right-tabs").addEventListener("keydown", (event) => this._key(event));
    const panels = new MutationObserver(() => this.show());
    for (const section of this.sections)
      panels.observe(section, { attributeFilter: ["hidden"], attributes: true });
  }

  /** What tells of a selection, a section for each thing that can be selected. */
  get sections() {
    const found = byId("right-selected").querySelectorAll(":scope > section");
    return /** @type {HTMLElement[]} */ ([...found]);
  }

  /** Whether anything is selected in the tab that is open. */
  get hasSelection() {
    const { view } = this.store.state;
    return this.sections.some(
      ({ hidden, dataset }) => !hidden && (dataset.views ?? view).split(" ").includes(view),
    );
  }

  /** What stands in the column, "" while it is away. */
  get side() {
    const { side } = this.store.state;
    if (side === "none") return "";
    if (SIDES.some((each) => each === side)) return side;
    return this.hasSelection ? "selected" : "";
  }

  /** Turns to a panel. @param {string} side */
  turn(side) {
    this.store.soon({ side });
    this.show();
  }

  /** Opens the column, or closes it. */
  toggle() {
    if (this.side) this.turn("none");
    else this.turn(this.hasSelection ? "" : "groups");
  }

  /** Shows what the state asks for. */
  show() {
    const { side, hasSelection } = this;
    byId("right").hidden = !side;
    byId("right-toggle").setAttribute("aria-expanded", String(Boolean(side)));
    byId("right-selected").classList.toggle("empty", !hasSelection);
    for (const each of SIDES) {
      const tab = byId(`side-${each}`);
      byId(`right-${each}`).hidden = each !== side;
      tab.setAttribute("aria-selected", String(each === side));
      tab.tabIndex = each === side ? 0 : -1;
    }
  }

  /** Goes from tab to tab. @param {KeyboardEvent} event */
  _key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const here = SIDES.findIndex((side) => side === this.side);
    if (!by || here < 0) return;
    event.preventDefault();
    const next = SIDES[(here + by + SIDES.length) % SIDES.length];
    this.turn(next);
    byId(`side-${next}`).focus();
  }
}
