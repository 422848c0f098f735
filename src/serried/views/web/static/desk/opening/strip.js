// The strip that says what is being opened, how far that is, and takes it back.

import { byId } from "../../base/dom.js";
import { language, t } from "../../base/i18n.js";

/**
 * @typedef {object} Opening  one thing that is opened, as the server tells of it
 * @property {number} number
 * @property {string} name
 * @property {"reading" | "done" | "failed" | "cancelled"} state
 * @property {string | null} kind
 * @property {string | null} tab
 * @property {Record<string, string> | null} what   what it is
 * @property {Record<string, string> | null} said   what is done at the moment
 * @property {number | null} share                  the part that was read
 * @property {Record<string, string> | null} error
 * @property {Record<string, string | string[]> | null} question
 * @property {string[]} files
 * @property {number} [trace]
 * @property {number} [check]
 * @property {string} [case]
 */

/** Says a sentence in the language in use. @param {Record<string, string> | null} sentence */
export function told(sentence) {
  return sentence ? (sentence[language()] ?? sentence.en) : "";
}

/** Shows that files are being sent; null hides it. @param {string | null} name */
export function showSending(name) {
  show(name === null ? "" : t("open.sending", { name }), null);
}

/** Shows the first of what is being read, or nothing. @param {Opening[]} reading */
export function showReading(reading) {
  const [first] = reading;
  if (!first) return show("", null);
  const what = told(first.what);
  const parts = [t("open.reading", { name: first.name }), what, told(first.said)];
  if (reading.length > 1) parts.push(t("open.more", { count: reading.length - 1 }));
  return show(parts.filter(Boolean).join(" · "), first.share);
}

/** @param {string} text @param {number | null} share */
function show(text, share) {
  const bar = /** @type {HTMLProgressElement} */ (byId("opening-share"));
  byId("opening").hidden = !text;
  byId("opening-text").textContent = text;
  if (share) bar.value = share;
  else bar.removeAttribute("value");
}
