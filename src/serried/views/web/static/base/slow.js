// Answers that take long: after a while the page says that it waits, and stays usable meanwhile.

import { byId } from "./dom.js";

/** Milliseconds after which an answer is said to take long. */
const LONG_MS = 1500;
let slow = 0;

/**
 * Returns what an answer returns; says that it is awaited once it takes long.
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T>}
 */
export async function watched(answer) {
  let isSlow = false;
  const timer = setTimeout(() => {
    isSlow = true;
    show(1);
  }, LONG_MS);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
    if (isSlow) show(-1);
  }
}

/** @param {number} change */
function show(change) {
  slow += change;
  byId("slow").hidden = slow === 0;
}
