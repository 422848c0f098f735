// The page on paper: as wide and as high as on the screen, and smaller, so that it fits a sheet.
// Pictures are drawn for the screen, and would be stretched in frames of another shape. What one
// scrolls to on the screen goes on on the next sheet.

import { FOR_PAPER } from "../base/canvas/paper.js";

/** A sheet of A4 on its side, within margins of 10 mm, in CSS pixels. */
const SHEET = { width: 1047, height: 718 };

/** Lays the page out for a sheet whenever it is printed. */
export function layOutForPaper() {
  /** What undoes the layout. @type {(() => void)[]} */
  let undone = [];
  addEventListener("beforeprint", () => {
    const drawn = [...folded().map(unfolded), ...FOR_PAPER.map((draw) => draw())];
    const parts = frames();
    const goesOn = parts.some(scrolls);
    undone = [...parts.map(held), ...drawn];
    const { clientWidth, clientHeight, style } = document.documentElement;
    const zoom = Math.min(1, SHEET.width / clientWidth, SHEET.height / clientHeight);
    style.setProperty("--screen-width", `${clientWidth}px`);
    style.setProperty("--screen-height", goesOn ? "auto" : `${clientHeight}px`);
    style.setProperty("--paper-zoom", String(zoom));
  });
  addEventListener("afterprint", () => {
    for (const undo of undone) undo();
    undone = [];
  });
}

/** Returns the parts of the view that is open, and what holds their pictures. */
function frames() {
  const found = document.querySelectorAll("#centre > section, #schedule-section, .frame");
  const all = /** @type {HTMLElement[]} */ ([...found]);
  return all.filter((each) => each.offsetHeight > 0);
}

/** Returns what could be opened by a click, which paper has none of. */
function folded() {
  const found = document.querySelectorAll("#centre details:not([open])");
  return /** @type {HTMLDetailsElement[]} */ ([...found]).filter((each) => each.offsetHeight > 0);
}

/** Opens a part; returns what closes it. @param {HTMLDetailsElement} part */
function unfolded(part) {
  part.open = true;
  return () => {
    part.open = false;
  };
}

/** @param {HTMLElement} part */
function scrolls(part) {
  return part.scrollHeight > part.clientHeight;
}

/** Keeps a part as high as it is, or as all it holds; returns what lets it go. */
/** @param {HTMLElement} part */
function held(part) {
  const { flex, height } = part.style;
  const kept = scrolls(part) ? "auto" : `${part.offsetHeight}px`;
  Object.assign(part.style, { flex: "none", height: kept });
  return () => {
    Object.assign(part.style, { flex, height });
  };
}
