// The state of the Plan panel: of what model, cluster and batch the job in view is planned.

/**
 * @typedef {object} PlanState
 * @property {string} planned       1 while the panel is open
 * @property {string} model         its name: llama3-8b
 * @property {string} cluster       its name, or its GPU's: h100
 * @property {string} sequence      tokens of one sequence
 * @property {string} global_batch  sequences of one step of the whole job
 * @property {string} micro_batch   sequences of one microbatch
 * @property {string} recompute     none, selective, full …
 * @property {string} compute       what matrices are multiplied in, "" as the GPU usually does
 */
/** @typedef {Exclude<keyof PlanState, "planned">} PlanField */

/** @type {Readonly<PlanState>} */
export const PLAN_DEFAULTS = Object.freeze({
  planned: "",
  model: "llama3-8b",
  cluster: "dgx-h100",
  sequence: "8192",
  global_batch: "64",
  micro_batch: "1",
  recompute: "none",
  compute: "",
});

/** Fields of the panel, in their order. @type {readonly PlanField[]} */
export const PLAN_FIELDS = Object.freeze([
  "model",
  "cluster",
  "sequence",
  "global_batch",
  "micro_batch",
  "recompute",
  "compute",
]);

/**
 * Returns what a state asks of the server beside the job.
 * @param {PlanState} state
 * @returns {Record<string, string>}
 */
export function planWords(state) {
  const told = PLAN_FIELDS.map((field) => [field, state[field].trim()]);
  return Object.fromEntries(told.filter(([, word]) => word));
}

/** Returns the field that a refusal is about, "" where it is about none. @param {string} word */
export function planField(word) {
  return PLAN_FIELDS.find((field) => field === word) ?? "";
}
