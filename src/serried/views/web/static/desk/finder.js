// The search box: what is typed there becomes a pinned rank, or the pinned ranks of a search.

import { announce } from "../base/announcer.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { matchingRanks, readSearch } from "../map/search.js";

/** Listens to the search box. @param {import("./desk.js").Desk} desk */
export function listenToSearch(desk) {
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") find(desk);
  });
}

/** @returns {HTMLInputElement} */
function box() {
  return /** @type {HTMLInputElement} */ (byId("search"));
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

/** @param {import("./desk.js").Desk} desk */
function find(desk) {
  const text = box().value.trim();
  const wishes = readSearch(text);
  const found = wishes && desk.scene && matchingRanks(desk.scene, wishes);
  box().toggleAttribute("aria-invalid", Boolean(text) && !found?.length);
  if (!text) desk.pin(null);
  else if (found?.length === 1) desk.choose(found[0]);
  else if (found?.length) {
    desk.pinSearch(text);
    desk.map.reveal(found[0]);
  } else {
    const axes = Object.keys(desk.scene?.job.axes ?? {}).join(", ");
    announce(
      t(!wishes ? "search.unread" : found ? "search.none" : "search.unknown", { text, axes }),
      box(),
    );
  }
}
