// The tip: a few lines beside the pointer, and beside a term when it is hovered or focused.

import { byId } from "./dom.js";

const AWAY = 14;
const EDGE = 4;

/** Where the tip is, and what it says. */
const shown = { x: 0, y: 0, text: "", width: 0, height: 0 };
/** Learns how large the tip has come out before it is seen, so that nobody has to wait for that. */
const sizes = new ResizeObserver(([{ target }]) => {
  const { offsetWidth: width, offsetHeight: height } = /** @type {HTMLElement} */ (target);
  Object.assign(shown, { width, height });
  place(/** @type {HTMLElement} */ (target));
});

/**
 * Shows lines of text beside a point of the page; nothing hides the tip.
 * @param {string[]} lines
 * @param {number} x
 * @param {number} y
 */
export function showTip(lines, x, y) {
  const tip = byId("tip");
  tip.hidden = !lines.length;
  if (tip.hidden) return;
  const text = lines.join("\n");
  Object.assign(shown, { x, y });
  if (text !== shown.text) {
    shown.text = text;
    tip.replaceChildren(
      ...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })),
    );
    sizes.observe(tip);
  }
  place(tip);
}

/** @param {HTMLElement} tip */
function place(tip) {
  const { x, y, width, height } = shown;
  const left = x + AWAY + width > innerWidth - EDGE ? x - AWAY - width : x + AWAY;
  const top = y + AWAY + height > innerHeight - EDGE ? y - AWAY - height : y + AWAY;
  tip.style.left = `${Math.max(EDGE, left)}px`;
  tip.style.top = `${Math.max(EDGE, top)}px`;
}

/** Hides the tip. */
export function hideTip() {
  const tip = byId("tip");
  if (!tip.hidden) tip.hidden = true;
}
