// Short news of the page: said aloud, and shown for a while beside what it is about.

import { byId } from "./dom.js";
import { hideTip, showTip } from "./tip.js";

const SHOWN_MS = 4000;
let timer = 0;

/** Says a sentence to those who listen to the page. @param {string} sentence */
export function say(sentence) {
  byId("live").textContent = sentence;
}

/**
 * Says a sentence, and shows it below an element.
 * @param {string} sentence
 * @param {HTMLElement} beside
 */
export function announce(sentence, beside) {
  say(sentence);
  const { left, bottom } = beside.getBoundingClientRect();
  showTip([sentence], left - 10, bottom - 8);
  clearTimeout(timer);
  timer = setTimeout(hideTip, SHOWN_MS);
}
