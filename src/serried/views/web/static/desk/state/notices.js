// What the page has to say of an address or a job: a line above everything, until it is closed.

import { byId, make } from "../../base/dom.js";
import { t } from "../../base/i18n.js";

/** @typedef {{text: string, act: () => void}} Way  what a notice offers to do */

/**
 * Shows a notice in the place of the one of the same name; without sentences there is none.
 * @param {string} name
 * @param {string[]} sentences
 * @param {Way[]} [ways]
 */
export function showNotice(name, sentences, ways = []) {
  const place = byId("notices");
  const hide = () => showNotice(name, []);
  place.querySelector(`[data-notice="${name}"]`)?.remove();
  if (!sentences.length) return;
  const buttons = ways.map(({ text, act }) =>
    make("button", { type: "button", click: () => (hide(), act()) }, text),
  );
  const close = make(
    "button",
    { type: "button", class: "close", "aria-label": t("notice.close"), click: hide },
    "×",
  );
  const lines = sentences.map((each) => make("span", {}, each));
  place.append(make("p", { "data-notice": name }, ...lines, ...buttons, close));
}
