// What the colours of the timeline mean: the action, the microbatch, the step, or a measured value.

/** @typedef {import("./sheet.js").SpanColumns} SpanColumns */
/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {import("./sheet.js").Colouring} Colouring */

/** Turns of eight colours that neighbours in number never share; light enough for dark letters. */
export const TURNS = [
  "#6fa8dc",
  "#f2b44b",
  "#57c4a8",
  "#e58fb4",
  "#b9c84c",
  "#a79be6",
  "#e88a6a",
  "#5cc4dd",
];

/**
 * What has no value, then from early over on time to late: blue and orange, apart for every eye.
 */
export const SCALE = [
  "#c3c9d2",
  "#5c97d6",
  "#96c0e8",
  "#cbe0f1",
  "#efece4",
  "#f4cf9b",
  "#ea9a55",
  "#dc6b52",
];

/** What a span may be coloured by, in the order of the chooser. */
export const COLOURS = ["", "microbatch", "step", "lateness"];

/**
 * Returns what the colours of a trace mean.
 * @param {Tracks} tracks
 * @param {string} name
 * @returns {Colouring}
 */
export function colouringOf(tracks, name) {
  if (name === "microbatch" || name === "step") return turns(name);
  const edges = tracks.scales[name];
  if (edges) return scale(name, edges);
  return byAction(tracks);
}

/** @param {Tracks} tracks @returns {Colouring} */
function byAction(tracks) {
  const colours = tracks.classes;
  /** @type {number[]} */
  const places = [];
  for (const { number, colour } of tracks.actions.values())
    places[number] = Math.max(0, colours.indexOf(colour));
  return { name: "", colours, classOf: ({ kind }, i) => places[kind[i]] ?? 0, legend: "actions" };
}

/** @param {"microbatch" | "step"} name @returns {Colouring} */
function turns(name) {
  const colours = ["#c3c9d2", ...TURNS];
  return {
    name,
    colours,
    classOf: (spans, i) => (spans[name][i] < 0 ? 0 : 1 + (spans[name][i] % TURNS.length)),
    legend: "turns",
  };
}

/** @param {string} name @param {number[]} edges @returns {Colouring} */
function scale(name, edges) {
  const classOf = (/** @type {SpanColumns} */ { values }, /** @type {number} */ i) => {
    const value = values.get(name)?.[i] ?? NaN;
    return Number.isNaN(value) ? 0 : 1 + edges.filter((edge) => value >= edge).length;
  };
  return { name, colours: SCALE, classOf, legend: "scale", edges };
}
