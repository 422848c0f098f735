// Marks the acronyms on the page, as it is and as it changes, so that each opens its card.

import { make } from "../base/dom.js";
import { acronyms } from "./acronyms.js";

/** What is no prose: pictures, code, what is typed, what is read aloud, long lists of ranks. */
const PLAIN =
  "[data-term], [data-plain], canvas, code, pre, script, style, textarea, select, option, a, kbd," +
  " #card, #tip, #live, #group-list, [role=alert], [role=status], output, title";
/** Controls: they bear the mark themselves, so that no control stands within another. */
const CONTROLS = "button, summary, [role=tab], [role=option]";
const REGIONS = "section, form, aside, header, dialog, main, body";
const REST_MS = 150;

/** Marks the acronyms of a page, now and whenever it changes. */
export class TermMarks {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Set<Node>} */
    this.changed = new Set([root]);
    /** @type {number | null} */
    this.timer = null;
    this.observer = new MutationObserver((records) => {
      for (const { addedNodes, target } of records)
        for (const node of addedNodes.length ? addedNodes : [target]) this.changed.add(node);
      this._soon();
    });
    this._watch();
    this._soon();
  }

  _watch() {
    this.observer.observe(this.root, { childList: true, characterData: true, subtree: true });
  }

  _soon() {
    if (this.timer === null) this.timer = setTimeout(() => this._mark(), REST_MS);
  }

  _mark() {
    this.timer = null;
    const roots = [...this.changed].filter((node) => this.root.contains(node));
    this.changed.clear();
    // What is marked here need not be looked at again.
    this.observer.disconnect();
    // All is read before anything changes: what is read after a change is laid out anew.
    const found = [...new Set(roots.flatMap(textsOf))].map(read).filter(({ said }) => said.length);
    for (const root of roots) for (const element of namedIn(root)) name(element);
    found.forEach(mark);
    this._watch();
  }
}

/** Returns the texts below a node that may hold acronyms. @param {Node} root @returns {Text[]} */
function textsOf(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = root instanceof Text ? [root] : [];
  while (walker.nextNode()) found.push(/** @type {Text} */ (walker.currentNode));
  return found.filter(
    ({ data, parentElement }) =>
      data.length > 1 && parentElement !== null && !parentElement.closest(PLAIN),
  );
}

/** Returns the elements below a node that name a term themselves. @param {Node} root */
function namedIn(root) {
  if (!(root instanceof HTMLElement)) return [];
  const found = /** @type {HTMLElement[]} */ ([...root.querySelectorAll("[data-term]")]);
  return root.dataset.term ? [root, ...found] : found;
}

/** @param {HTMLElement} element */
function name(element) {
  if (element.classList.contains("term") || element.matches(CONTROLS)) return;
  element.classList.add("term");
  const region = element.closest(REGIONS);
  if (!region?.querySelector(`.term[data-term="${element.dataset.term}"][tabindex="0"]`))
    element.tabIndex = 0;
}

/**
 * @typedef {object} Found
 * @property {Text} text
 * @property {ReturnType<typeof acronyms>} said
 * @property {boolean} isApart  whether each child of what holds the text is laid out apart
 */

/** Returns the acronyms of a text, and how it is laid out. @param {Text} text @returns {Found} */
function read(text) {
  const said = acronyms(text.data);
  const holder = /** @type {HTMLElement} */ (text.parentElement);
  return {
    text,
    said,
    isApart: said.length > 0 && /flex|grid/.test(getComputedStyle(holder).display),
  };
}

/** @param {Found} found */
function mark({ text, said, isApart }) {
  const control = /** @type {HTMLElement | null} */ (text.parentElement?.closest(CONTROLS));
  if (control) {
    control.dataset.term = said[0].key;
    return;
  }
  /** @type {(Node | string)[]} */
  const parts = [];
  let from = 0;
  for (const { at, word, key } of said) {
    parts.push(text.data.slice(from, at), term(word, key, text));
    from = at + word.length;
  }
  parts.push(text.data.slice(from));
  // Each child of a flex box is laid out apart, so that there the parts stay together in one.
  if (isApart) text.replaceWith(make("span", {}, ...parts));
  else text.replaceWith(...parts);
}

/**
 * Makes the mark of a word; the first of a region can be reached by keyboard.
 * @param {string} word
 * @param {string} key
 * @param {Text} text
 */
function term(word, key, text) {
  const region = text.parentElement?.closest(REGIONS);
  const isFirst = !region?.querySelector(`[data-term="${key}"][tabindex="0"]`);
  return make(
    "span",
    { class: "term", "data-term": key, ...(isFirst ? { tabindex: 0 } : {}) },
    word,
  );
}
