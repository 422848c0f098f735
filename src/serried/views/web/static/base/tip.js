// The tip: a few lines beside the pointer, and beside a term when it is hovered or focused.

import { byId } from "./dom.js";

const AWAY = 14;

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
  tip.replaceChildren(
    ...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })),
  );
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = x + AWAY + width > innerWidth - 4 ? x - AWAY - width : x + AWAY;
  const top = y + AWAY + height > innerHeight - 4 ? y - AWAY - height : y + AWAY;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

/** Hides the tip. */
export function hideTip() {
  byId("tip").hidden = true;
}
