// The page's words in each language: one dictionary each, and the elements that show them.

import { askDocument } from "./questions.js";

export const LANGUAGES = ["en", "zh"];

/** @type {Record<string, string>} */
let words = {};
let current = "en";

/** Returns the language in use. */
export function language() {
  return current;
}

/**
 * Returns the language to use: the one asked for, else the first of the browser's that we speak.
 * @param {string} asked
 * @param {readonly string[]} preferred
 */
export function chosenLanguage(asked, preferred) {
  const wanted = [asked, ...preferred].map((each) => each.toLowerCase().split("-")[0]);
  return wanted.find((each) => LANGUAGES.includes(each)) ?? "en";
}

/** Loads a language's dictionary and turns the page to it. @param {string} lang */
export async function speak(lang) {
  words = await askDocument(`words?lang=${lang}`);
  current = lang;
  document.documentElement.lang = lang === "zh" ? "zh-CN" : lang;
  translate(document);
  document.documentElement.dataset.spoken = lang;
  document.dispatchEvent(new Event("spoken"));
}

/**
 * Returns a sentence, its {places} filled.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const sentence = words[key] ?? key;
  return sentence.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/**
 * Writes how many of something there are: 1 node, 2 nodes.
 * @param {string} key
 * @param {number} count
 */
export function counted(key, count) {
  return t(count === 1 && has(`${key}.one`) ? `${key}.one` : key, { count: number(count) });
}

/** Tells whether there is a sentence for a key. @param {string} key */
export function has(key) {
  return key in words;
}

/** Of each language, made once: it takes a hundred times as long as to write one number. */
const numbers = /** @type {Record<string, Intl.NumberFormat>} */ ({});

/** Writes a number with its thousands set apart. @param {number} value */
export function number(value) {
  numbers[current] ??= new Intl.NumberFormat(current === "zh" ? "zh-CN" : "en");
  return numbers[current].format(value);
}

/** Writes a list as it is said: "4, 4 and 1", "4、4 和 1". @param {string[]} parts */
export function listed(parts) {
  if (parts.length < 2) return parts.join("");
  return t("list.last", {
    before: parts.slice(0, -1).join(t("names.join")),
    last: parts[parts.length - 1],
  });
}

/** Fills every element that names a sentence. @param {ParentNode} root */
function translate(root) {
  const targets = /** @type {const} */ ([
    ["data-i18n", null],
    ["data-i18n-label", "aria-label"],
    ["data-i18n-title", "title"],
    ["data-i18n-placeholder", "placeholder"],
  ]);
  for (const [source, attribute] of targets) {
    for (const element of root.querySelectorAll(`[${source}]`)) {
      const text = t(element.getAttribute(source) ?? "");
      if (attribute) element.setAttribute(attribute, text);
      else element.textContent = text;
    }
  }
}
