// What an address holds that this page does not know: words of a newer version, tabs, languages.

import { LANGUAGES, t } from "../../base/i18n.js";
import { tabNamed } from "../../base/tabs.js";
import { showNotice } from "./notices.js";
import { DEFAULTS } from "./fields.js";

/** Words that are no field: a server's token, and those from before there were tabs. */
const OTHERS = ["token", "planned"];
const OLD_VIEW = "job";

/**
 * Returns the words of an address that are no field.
 * @param {string} search
 * @returns {string[][]}
 */
function unknownWords(search) {
  const words = [...new URLSearchParams(search)];
  return words.filter(([name]) => !(name in DEFAULTS) && !OTHERS.includes(name));
}

/** Holds them, so that they stay in the address whatever else changes. */
export class Unknown {
  /** @param {string} search */
  constructor(search) {
    /** @type {string[][]} */
    this.words = [];
    this.view = this.lang = "";
    this.take(search);
    document.addEventListener("spoken", () => this.show());
  }

  /** Takes another address. @param {string} search */
  take(search) {
    const words = new URLSearchParams(search);
    this.words = unknownWords(search);
    const view = words.get("view") ?? "";
    const isOdd = view && view !== OLD_VIEW && tabNamed(words) !== view;
    this.view = isOdd ? view : "";
    const lang = words.get("lang") ?? "";
    this.lang = LANGUAGES.includes(lang.toLowerCase().split("-")[0]) ? "" : lang;
  }

  /**
   * Writes an address's search part with the unknown words behind those known.
   * @param {string} text
   */
  behind(text) {
    const others = new URLSearchParams(this.words).toString();
    return [text, others].filter(Boolean).join("&");
  }

  /** Says what the address holds that is not known, and what becomes of it. */
  show() {
    const { lang, view, words } = this;
    const given = [...words, ...(view ? [["view", view]] : [])];
    const named = given.map((pair) => shortened(pair.join("=")));
    const told = words.length ? "unknown.kept" : "unknown.tab";
    showNotice("unknown", [
      ...(given.length ? [t(told, { words: named.join(t("names.join")) })] : []),
      ...(lang ? [t("unknown.language", { lang: shortened(lang) })] : []),
    ]);
  }
}

/** @param {string} text */
function shortened(text) {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
