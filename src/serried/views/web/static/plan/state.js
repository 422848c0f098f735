// The state of the Plan tab: of what model, cluster and batch the job in view is planned.

/**
 * @typedef {object} PlanState
 * @property {string} model         its name: llama3-8b
 * @property {string} cluster       its name, or its GPU's: h100
 * @property {string} sequence      tokens of one sequence
 * @property {string} global_batch  sequences of one step of the whole job
 * @property {string} micro_batch   sequences of one microbatch
 * @property {string} recompute     none, selective, full …
 * @property {string} compute       what matrices are multiplied in, "" as the GPU usually does
 * @property {string} schedule      of the pipeline, "" for 1f1b
 * @property {string} plan_chunks   model chunks of each rank, "" as the schedule has them
 * @property {string} account_for   embedding,loss where both count as a layer each
 * @property {string} plan_more     words without a field of their own, and settings, by spaces
 * @property {string} plan_assumed  fields that a launch file left open, joined by commas
 * @property {string} searched      1 while layouts are searched
 * @property {string} no_traffic    kinds whose traffic is not drawn on the map, joined by commas
 * @property {string} links         1 while links are drawn on the map of other tabs as well
 * @property {string} plan_a        a plan that is pinned, as the words of its question
 * @property {string} plan_b        the other one
 * @property {string} planned_step  1 while the planned step is the timeline below
 */
/**
 * @typedef {"plan_assumed" | "searched" | "planned_step" | "no_traffic" | "links" | "plan_a" |
 *   "plan_b"} ShownField
 */
/** @typedef {Exclude<keyof PlanState, ShownField>} PlanField */
/**
 * @typedef {object} PlanHost  the page around the panel
 * @property {import("../base/store.js").Part<PlanState & {view: string}>} store
 * @property {(words: Record<string, string>) => string} question  about the job in view
 * @property {(change: Record<string, string>) => void} pick  makes a layout that of the job
 * @property {(planned_step: string) => void} step  shows the planned step, or hides it
 * @property {(words: string) => Promise<unknown>} timeline  shows the planned step that words ask
 *   for below, none for ""
 */

/** @type {Readonly<PlanState>} */
export const PLAN_DEFAULTS = Object.freeze({
  model: "llama3-8b",
  cluster: "dgx-h100",
  sequence: "8192",
  global_batch: "64",
  micro_batch: "1",
  recompute: "none",
  compute: "",
  schedule: "",
  plan_chunks: "",
  account_for: "",
  plan_more: "",
  plan_assumed: "",
  searched: "",
  planned_step: "",
  no_traffic: "",
  links: "",
  plan_a: "",
  plan_b: "",
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
  "schedule",
  "plan_chunks",
  "account_for",
  "plan_more",
]);

/** Fields that the server knows by another name. @type {Partial<Record<PlanField, string>>} */
const WORDS = { plan_chunks: "chunks", plan_more: "more" };

/**
 * Returns what a state asks of the server beside the job.
 * @param {PlanState} state
 * @returns {Record<string, string>}
 */
export function planWords(state) {
  const told = PLAN_FIELDS.map((field) => [WORDS[field] ?? field, state[field].trim()]);
  return Object.fromEntries(told.filter(([, word]) => word));
}

/**
 * Tells whether a launch file left a field open, which the page filled and nobody has changed.
 * @param {PlanState} state
 * @param {string} field
 */
export function isAssumed(state, field) {
  return state.plan_assumed.split(",").includes(field);
}

/**
 * Returns the fields that are left assumed once one of them is typed into.
 * @param {PlanState} state
 * @param {string} field
 */
export function stillAssumed(state, field) {
  return state.plan_assumed
    .split(",")
    .filter((each) => each !== field)
    .join(",");
}

/** Returns the field that a refusal is about, "" where it is about none. @param {string} word */
export function planField(word) {
  return PLAN_FIELDS.find((field) => (WORDS[field] ?? field) === word) ?? "";
}

/** What of a question says how the plan is shown, not what it is of. */
const OF_THE_PAGE = ["lang", "dims", "kind"];

/**
 * Returns a question's words of job and plan alone, as they name its planned step.
 * @param {string} question
 */
export function stepWords(question) {
  const words = new URLSearchParams(question);
  OF_THE_PAGE.forEach((word) => words.delete(word));
  return words.toString();
}
