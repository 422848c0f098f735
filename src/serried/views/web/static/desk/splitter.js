// The bar between map and timeline: dragged, or moved by the arrow keys, in each tab by itself.

import { byId } from "../base/dom.js";

const STEP_PERCENT = 4;
const LEAST = 20;
const MOST = 85;

/** Listens to the splitter; it sets how much of the height is the timeline's. */
export function listenToSplitter() {
  const splitter = byId("splitter");
  const centre = byId("centre");
  /** @type {Record<string, number>} */
  const percents = { run: 68, plan: 40 };
  /** @param {number} wanted */
  const split = (wanted, view = document.body.dataset.view ?? "run") => {
    percents[view] = Math.min(MOST, Math.max(LEAST, wanted));
    centre.style.setProperty(`--timeline-${view}`, `${percents[view]}%`);
    splitter.setAttribute("aria-valuenow", String(Math.round(percents[view])));
  };
  for (const [view, percent] of Object.entries(percents)) split(percent, view);
  splitter.addEventListener("pointerdown", (event) => splitter.setPointerCapture(event.pointerId));
  splitter.addEventListener("pointermove", (event) => {
    if (!splitter.hasPointerCapture(event.pointerId)) return;
    const { bottom, height } = centre.getBoundingClientRect();
    split((100 * (bottom - event.clientY)) / height);
  });
  splitter.addEventListener("keydown", (event) => {
    const by = { ArrowUp: STEP_PERCENT, ArrowDown: -STEP_PERCENT }[event.key];
    if (!by) return;
    event.preventDefault();
    split((percents[document.body.dataset.view ?? "run"] ?? LEAST) + by);
  });
}
