// The state of the ZeRO panel: of what model and step it shows the bytes, and the moment.

/**
 * @typedef {object} ShardingState
 * @property {string} sharded        1 while the panel is open
 * @property {string} parameters     of the model: 7.5B
 * @property {string} precision      the recipe, "" for the server's first
 * @property {string} layers         of the model
 * @property {string} accumulated    microbatches whose gradients are summed before the step
 * @property {string} zero_priced    plan where the plan of the job says model and batch
 * @property {string} event          events of the step that are over
 */
/** @typedef {keyof ShardingState} ShardingField */

/** @type {Readonly<ShardingState>} */
export const SHARDING_DEFAULTS = Object.freeze({
  sharded: "",
  parameters: "7.5B",
  precision: "",
  layers: "4",
  accumulated: "1",
  zero_priced: "",
  event: "",
});

/**
 * Returns what a state asks of the server beside the job.
 * @param {ShardingState} state
 * @param {Record<string, string>} planned  the words of the job's plan
 * @returns {Record<string, string>}
 */
export function wordsOf(state, planned) {
  const { parameters, precision, layers, accumulated } = state;
  if (state.zero_priced) return { ...planned, priced: "plan" };
  /** @type {Record<string, string>} */
  const words = { parameters, precision, layers, microbatches: accumulated };
  return Object.fromEntries(Object.entries(words).filter(([, word]) => word));
}

/**
 * Reads the moment: events over, between none and all.
 * @param {string} text
 * @param {number} count
 */
export function eventOf(text, count) {
  return /^\d+$/.test(text) ? Math.min(Number(text), count) : 0;
}
