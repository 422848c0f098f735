// The way past bar and form: the first stop of the keyboard leads to the picture of the tab.

import { byId } from "../base/dom.js";

/** Pictures that take the keyboard, each before those that may stand below it. */
const PICTURES = ["map", "schedule", "timeline"];

/** Lets the first stop of the keyboard lead to the picture that is in view. */
export function listenToSkip() {
  byId("skip-map").addEventListener("click", () => {
    const picture = PICTURES.map(byId).find((each) => each.checkVisibility());
    const first = /** @type {HTMLElement | null} */ (document.querySelector("#learn-cards button"));
    (picture ?? first)?.focus();
  });
}
