// The state of Learn: which card stands at the right.

/**
 * @typedef {object} LearnState
 * @property {string} card  the key of the card that is open, "" for none
 */

/** @type {Readonly<LearnState>} */
export const LEARN_DEFAULTS = Object.freeze({ card: "" });
