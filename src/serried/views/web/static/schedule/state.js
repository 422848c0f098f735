// The state of the Schedule view: what is simulated, how it is shown, what is chosen; and presets.

/**
 * @typedef {object} ScheduleState
 * @property {string} name          the schedules, from the top, joined by commas
 * @property {string} stages        pipeline ranks; "" for the job's own
 * @property {string} microbatches
 * @property {string} chunks        stages on each rank; "" for each schedule's own
 * @property {string} group         microbatches in a group; "" for each schedule's own
 * @property {string} forward       a time, or one for each stage
 * @property {string} input_grad
 * @property {string} weight_grad
 * @property {string} latency
 * @property {string} memory_limit  activations that fit on a rank; "" for no limit
 * @property {string} of            rank or stage: what the times and the limit are of
 * @property {string} show          strips, path: what is drawn beside the actions
 * @property {string} window        the stretch of time in view: first and last unit
 * @property {string} action        what is chosen: place in name, colon, action
 */
/**
 * @typedef {ScheduleState & import("../base/tabs.js").TabState & {pp: string}} AskedState
 *   pp: the job's own pipeline ranks
 */
/** @typedef {keyof ScheduleState} ScheduleField */

/** @type {ScheduleState} */
export const SCHEDULE_DEFAULTS = Object.freeze({
  name: "1f1b,zb-h1,zbv",
  stages: "",
  microbatches: "8",
  chunks: "",
  group: "",
  forward: "1",
  input_grad: "1",
  weight_grad: "1",
  latency: "0",
  memory_limit: "",
  of: "rank",
  show: "strips",
  window: "",
  action: "",
});

/** Fields that are typed or chosen in the form, called as the options and the JSON call them. */
export const QUESTION_FIELDS = /** @type {const} */ ([
  "stages",
  "microbatches",
  "chunks",
  "group",
  "forward",
  "input_grad",
  "weight_grad",
  "latency",
  "memory_limit",
  "of",
]);

/** Most schedules one under another. */
export const MOST_NAMES = 8;

/**
 * States worth a look; what one does not name is as in the defaults.
 * @type {Record<string, Partial<ScheduleState>>}
 */
export const PRESETS = {
  bubbles: { name: "1f1b,zb-h1,zb-h2,zbv" },
  interleaved: { name: "1f1b,interleaved-1f1b,looped-bfs" },
  memory: { name: "1f1b,v-half,v-min", microbatches: "12" },
  latency: { name: "1f1b,eager-1f1b,gpipe", latency: "1/2" },
  both_ways: { name: "chimera,dualpipe,dualpipev", stages: "8", microbatches: "16" },
  limit: {
    name: "1f1b,auto",
    microbatches: "12",
    forward: "10,12,12,14",
    input_grad: "12",
    weight_grad: "7",
    latency: "1",
    memory_limit: "6",
    stages: "4",
  },
  million: { name: "interleaved-1f1b", stages: "64", microbatches: "1024", chunks: "8" },
};

/** Returns the schedules of a state, from the top. @param {ScheduleState} state */
export function namesOf(state) {
  const names = state.name
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  return [...new Set(names)].slice(0, MOST_NAMES);
}

/**
 * Returns a list of names with one added at its end.
 * @param {string[]} names
 * @param {string} name
 */
export function withName(names, name) {
  return [...names.filter((each) => each !== name), name].slice(-MOST_NAMES).join(",");
}

/**
 * Returns a list of names with the one at `place` moved up, the first one to the end.
 * @param {string[]} names
 * @param {number} place
 */
export function movedUp(names, place) {
  const rest = names.filter((_, i) => i !== place);
  rest.splice(place ? place - 1 : rest.length, 0, names[place]);
  return rest.join(",");
}

/**
 * Returns the fields that a preset sets, every other field of the form as in the defaults.
 * @param {string} preset
 */
export function presetFields(preset) {
  return { ...SCHEDULE_DEFAULTS, ...PRESETS[preset] };
}

/** Returns the preset that a state is, "" where it is none. @param {ScheduleState} state */
export function presetOf(state) {
  const asked = /** @type {ScheduleField[]} */ (["name", ...QUESTION_FIELDS]);
  const found = Object.keys(PRESETS).find((preset) => {
    const fields = presetFields(preset);
    return asked.every(
      (field) => state[field] === /** @type {Record<string, string>} */ (fields)[field],
    );
  });
  return found ?? "";
}

/**
 * Writes the question for one schedule of a state, without what it leaves no choice of.
 * @param {AskedState} state
 * @param {{name: string, chunks?: number | null, takes_group?: boolean}} schedule
 * @param {string} lang
 */
export function scheduleQuestion(state, { name, chunks, takes_group }, lang) {
  const words = new URLSearchParams({ lang, name });
  const fixed = { chunks: Boolean(chunks), group: takes_group === false };
  for (const field of QUESTION_FIELDS) {
    if ((field === "chunks" || field === "group") && fixed[field]) continue;
    const value = field === "stages" ? state.stages || state.pp : state[field];
    if (value) words.set(field, value);
  }
  return words.toString();
}

/**
 * Returns the field of the form that a refusal is about, "" where the form has none of that name.
 * @param {string} word
 */
export function fieldOfWord(word) {
  return QUESTION_FIELDS.find((field) => field === word) ?? "";
}

/**
 * Tells whether something is drawn beside the actions.
 * @param {ScheduleState} state
 * @param {string} what strips or path
 */
export function isShown(state, what) {
  return state.show.split(",").includes(what);
}

/**
 * Returns what is drawn with something put in, or taken out.
 * @param {ScheduleState} state
 * @param {string} what
 */
export function toggledShow(state, what) {
  const all = ["strips", "path"];
  return all.filter((each) => isShown(state, each) !== (each === what)).join(",");
}
