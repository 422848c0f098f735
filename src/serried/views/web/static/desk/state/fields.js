// The state of the page, which the address bar holds whole: only what differs from the defaults.

import { TAB_DEFAULTS, tabNamed } from "../../base/tabs.js";
import { COLLECTIVE_DEFAULTS } from "../../collective/state.js";
import { DIAGNOSE_DEFAULTS } from "../../diagnose/state.js";
import { LEARN_DEFAULTS } from "../../learn/state.js";
import { PLAN_DEFAULTS } from "../../plan/state.js";
import { SCHEDULE_DEFAULTS } from "../../schedule/state.js";
import { SHARDING_DEFAULTS } from "../../sharding/state.js";
import { TIMELINE_DEFAULTS } from "../../timeline/state.js";
import { SIZES } from "./sizes.js";

/**
 * @typedef {object} PageState
 * @property {string} framework  NAME, or NAME@VERSION for any but the newest
 * @property {string} set      settings of the framework, KEY=VALUE, one a line
 * @property {string} dims     dimensions in view, joined by commas
 * @property {string} kind     other kinds in view, one a line
 * @property {string} arrange  node, stage or cube: what the boxes of the map are
 * @property {string} cube     axes of the cube: [MESH:]ROWS/COLUMNS/BLOCKS, "" for the usual ones
 * @property {string} scale    zero or median: where the colours of a figure begin, "" the usual
 * @property {string} beside   another layout to compare: words of a job, joined by &
 * @property {string} lang
 * @property {string} trace    number of the trace in view
 * @property {string} run      the run that this trace is of, by which a link finds it anywhere
 * @property {string} rank     the rank that is pinned
 * @property {string} pinned_group  the group that is pinned, KIND:NUMBER
 * @property {string} slice    the slice that is pinned
 * @property {string} find     the search whose ranks are pinned
 * @property {string} map      the map's view: x, y and pixels per rank
 * @property {string} heat     the figure of the trace that colours the map, "" for its groups
 */
/** @typedef {import("../../base/tabs.js").TabState} TabState */
/** @typedef {import("../../schedule/state.js").ScheduleState} ScheduleState */
/** @typedef {import("../../timeline/state.js").TimelineState} TimelineState */
/** @typedef {import("../../collective/state.js").CollectiveState} CollectiveState */
/** @typedef {import("../../sharding/state.js").ShardingState} ShardingState */
/** @typedef {import("../../plan/state.js").PlanState} PlanState */
/** @typedef {import("../../diagnose/state.js").DiagnoseState} DiagnoseState */
/** @typedef {import("../../learn/state.js").LearnState} LearnState */
/** @typedef {(typeof SIZES)[number]["name"]} SizeName */
/** @typedef {Record<SizeName, string>} SizesState */
/**
 * @typedef {TabState & PageState & SizesState & TimelineState & ScheduleState & CollectiveState &
 *   ShardingState & PlanState & DiagnoseState & LearnState} State
 */
/** @typedef {keyof State} Field */

/** @type {State} */
export const DEFAULTS = Object.freeze({
  ...TAB_DEFAULTS,
  framework: "megatron",
  .../** @type {SizesState} */ (valuesOf("start")),
  set: "",
  dims: "dp,tp,pp",
  kind: "",
  arrange: "node",
  cube: "",
  beside: "",
  lang: "",
  trace: "0",
  run: "",
  rank: "",
  pinned_group: "",
  slice: "",
  find: "",
  map: "",
  ...TIMELINE_DEFAULTS,
  heat: "",
  scale: "",
  ...SCHEDULE_DEFAULTS,
  ...COLLECTIVE_DEFAULTS,
  ...SHARDING_DEFAULTS,
  ...PLAN_DEFAULTS,
  ...DIAGNOSE_DEFAULTS,
  ...LEARN_DEFAULTS,
});

/** Fields that make a job's layout; the rest is what is shown of it. @type {Field[]} */
export const JOB_FIELDS = ["framework", ...SIZES.map(({ name }) => name), "set"];

/** Fields of several values, one a line, each a word of its own. @type {Field[]} */
const LISTS = ["set", "kind"];

/** What a job has that says nothing of it. @type {Record<string, string>} */
const USUAL = { framework: DEFAULTS.framework, ...valuesOf("usual") };

/** Returns a value of each size by its name. @param {"start" | "usual"} which */
function valuesOf(which) {
  return Object.fromEntries(SIZES.map((size) => [size.name, size[which]]));
}

/** Dimensions in the order they stand in `dims`; any other follows. */
const ORDER = ["dp", "tp", "pp", "cp", "ep"];

/** The group types with a name of their own, each as `dims` writes it. */
export const TYPES = [
  "dp",
  "tp",
  "pp",
  "cp",
  "dp,tp",
  "dp,pp",
  "dp,tp,pp",
  "dp,cp",
  "dp,tp,cp",
  "dp,pp,cp",
  "dp,tp,pp,cp",
];

/**
 * Reads a state from an address's search part; words that are no field are passed over.
 * @param {string} search
 * @returns {State}
 */
export function readState(search) {
  const words = new URLSearchParams(search);
  /** @type {State} */
  const state = { ...DEFAULTS };
  for (const field of /** @type {Field[]} */ (Object.keys(DEFAULTS))) {
    const values = words.getAll(field);
    if (values.length) state[field] = values.join("\n");
  }
  state.view = tabNamed(words) || DEFAULTS.view;
  state.dims = sortedDims(state.dims.split(","));
  return state;
}

/** Tells whether an address says which tab to open. @param {string} search */
export function namesTab(search) {
  return Boolean(tabNamed(new URLSearchParams(search)));
}

/** Tells whether an address says which job to show. @param {string} search */
export function namesJob(search) {
  const words = new URLSearchParams(search);
  return JOB_FIELDS.some((field) => words.has(field));
}

/** Tells whether an address says which run to show. @param {string} search */
export function namesRun(search) {
  const words = new URLSearchParams(search);
  return words.has("run") || words.has("trace");
}

/**
 * Writes a state as an address's search part, "?" left out: the fields that differ from the
 * defaults, and `always` one that says that the job was chosen, where a trace would suggest one.
 * @param {State} state
 * @param {Field[]} [always]
 */
export function writeState(state, always = []) {
  const words = new URLSearchParams();
  for (const field of /** @type {Field[]} */ (Object.keys(DEFAULTS))) {
    if (state[field] === DEFAULTS[field] && !always.includes(field)) continue;
    for (const value of LISTS.includes(field) ? linesOf(state[field]) : [state[field]])
      words.append(field, value);
  }
  return words.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/**
 * Writes the question that a state asks of the server, every word of it.
 * @param {State} state
 * @param {string} lang
 * @param {Record<string, string>} [more]
 */
export function question(state, lang, more = {}) {
  const words = new URLSearchParams({ lang, ...more });
  for (const field of JOB_FIELDS) {
    if (field !== "set" && state[field]) words.set(field, state[field]);
  }
  if (state.dims) words.set("dims", state.dims);
  for (const field of LISTS) {
    for (const line of linesOf(state[field])) words.append(field, line);
  }
  return words.toString();
}

/** Returns what a field of several values holds. @param {string} text */
export function linesOf(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** Writes dimensions as `dims` does: each once, in order. @param {Iterable<string>} dims */
export function sortedDims(dims) {
  const wanted = [...new Set(dims)].filter(Boolean);
  const others = wanted.filter((dim) => !ORDER.includes(dim)).sort();
  return [...ORDER.filter((dim) => wanted.includes(dim)), ...others].join(",");
}

/**
 * Returns `state` with the job of a trace in it and nothing pinned.
 * @param {State} state
 * @param {Record<string, string | string[]>} words
 */
export function withJob(state, words) {
  /** @type {State} */
  const next = { ...state, rank: "", pinned_group: "", slice: "", find: "", map: "" };
  for (const field of JOB_FIELDS) {
    const word = words[field] ?? USUAL[field] ?? "";
    next[field] = Array.isArray(word) ? word.join("\n") : word;
  }
  return next;
}

/**
 * Returns `state` with what a launch file says of the training; what only the file before said is
 * as the page assumes it again, and what was typed stays.
 * @param {State} state
 * @param {Record<string, string>} words
 * @param {Record<string, string>} [before]  what the file before said
 * @returns {State}
 */
export function withTraining(state, words, before = {}) {
  const left = /** @type {Field[]} */ (Object.keys(before)).filter(
    (field) => field in DEFAULTS && state[field] === before[field],
  );
  const known = Object.entries(words).filter(([field]) => field in DEFAULTS);
  const usual = left.map((field) => [field, DEFAULTS[field]]);
  return { ...state, ...Object.fromEntries(usual), ...Object.fromEntries(known) };
}

/**
 * Tells whether a state asks for the layout that `words` describe.
 * @param {State} state
 * @param {Record<string, string | string[]>} words
 */
export function asksFor(state, words) {
  const other = withJob(state, words);
  return JOB_FIELDS.every((field) => state[field] === other[field]);
}
