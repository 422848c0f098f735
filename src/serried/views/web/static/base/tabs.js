// The tabs of the page, and the state that says which is open and what stands at the right of it.

/**
 * @typedef {object} TabState
 * @property {string} view  the tab that is open, one of TABS
 * @property {string} side  what stands at the right: selected, groups or learn; "" what is
 *   selected, where anything is; "none" nothing until something else is selected
 */

/** The tabs, from the left. */
export const TABS = /** @type {const} */ ([
  "layout",
  "schedule",
  "plan",
  "run",
  "diagnose",
  "learn",
]);

/** What may stand at the right, from the left. */
export const SIDES = /** @type {const} */ (["selected", "groups", "learn"]);

/** @type {Readonly<TabState>} */
export const TAB_DEFAULTS = Object.freeze({ view: "layout", side: "" });

/** Words of addresses from before there were tabs, and the tab that shows what they opened. */
const BEFORE = { planned: "plan", diagnosed: "diagnose" };

/**
 * Returns the tab that an address names, "" where it names none.
 * @param {URLSearchParams} words
 */
export function tabNamed(words) {
  const named = words.get("view") ?? "";
  if (TABS.some((tab) => tab === named)) return named;
  const before = Object.entries(BEFORE).find(([word]) => words.get(word));
  return before?.[1] ?? "";
}
