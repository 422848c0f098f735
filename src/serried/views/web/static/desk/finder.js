// The search box: what is typed there becomes a pinned rank, or the pinned ranks of a search.

import { announce } from "../base/announcer.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { matchingRanks, readSearch } from "../map/search.js";

/**
 * Listens to the search box.
 * @param {import("./layout.js").LayoutDesk} layout
 * @param {import("./selection.js").Selection} selection
 */
export function listenToSearch(layout, selection) {
  box().addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const text = box().value.trim();
    const wishes = readSearch(text);
    const found = wishes && layout.scene && matchingRanks(layout.scene, wishes);
    box().toggleAttribute("aria-invalid", Boolean(text) && !found?.length);
    if (!text) selection.pin(null);
    else if (found?.length === 1) selection.choose(found[0]);
    else if (found?.length) selection.pinSearch(text, found[0]);
    else {
      const axes = Object.keys(layout.scene?.job.axes ?? {}).join(", ");
      const why = !wishes ? "search.unread" : found ? "search.none" : "search.unknown";
      announce(t(why, { text, axes }), box());
    }
  });
}

/** Puts the cursor into the search box. */
export function enterSearch() {
  box().select();
}

/** Leaves the search box empty. */
export function leaveSearch() {
  box().value = "";
  box().removeAttribute("aria-invalid");
  box().blur();
}

/** @returns {HTMLInputElement} */
function box() {
  return /** @type {HTMLInputElement} */ (byId("search"));
}
