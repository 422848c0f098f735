// The page on paper: as wide and as high as on the screen, and smaller, so that it fits a sheet.
// Pictures are drawn for the screen, and would be stretched in frames of another shape. What one
// scrolls to on the screen goes on on the next sheet. Its colours are those of a light page.

import { FOR_PAPER } from "../base/canvas/paper.js";
import { drawAwaited } from "../base/canvas/surface.js";
import { lightForPaper } from "../base/theme.js";

/** A sheet of A4 on its side, within margins of 10 mm, in CSS pixels. */
const SHEET = { width: 1047, height: 718 };

/** Lays the page out for a sheet whenever it is printed. */
export function layOutForPaper() {
  /** What undoes the layout. @type {(() => void)[]} */
  let undone = [];
  addEventListener("beforeprint", () => {
    const light = lightForPaper();
    const drawn = [...folded().map(unfolded), ...FOR_PAPER.map((draw) => draw())];
    if (light) drawn.push(light, ...drawnAnew());
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

/**
 * Draws what waits for a frame, of which paper has none. Where pictures lie one over another,
 * Chromium prints one that is drawn now without what lies below it, so that the lowest takes all.
 */
function drawnAnew() {
  drawAwaited();
  const found = [...document.querySelectorAll("canvas")].filter((each) => each.checkVisibility());
  return found
    .filter((each) => each.parentElement?.querySelector("canvas") !== each)
    .map((over) => {
      const base = /** @type {HTMLCanvasElement} */ (over.parentElement?.querySelector("canvas"));
      const [from, to] = [over.getBoundingClientRect(), base.getBoundingClientRect()];
      const scale = base.width / to.width;
      const context = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d"));
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.drawImage(over, from.left - to.left, from.top - to.top, from.width, from.height);
      over.style.visibility = "hidden";
      return () => {
        over.style.visibility = "";
      };
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
