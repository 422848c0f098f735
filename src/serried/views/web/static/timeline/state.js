// The state of the timeline, and what it asks of the page around it.

/**
 * @typedef {object} TimelineState
 * @property {string} time     its view: first and last nanosecond
 * @property {string} by       what its rows stand under: node, stage or a kind of groups
 * @property {string} folded   groups whose rows are folded, in runs
 * @property {string} colour   what its colours mean, "" for the action
 * @property {string} range    first and last nanosecond, ranks in runs
 * @property {string} plan     1 while the plan is drawn below what was recorded
 * @property {string} live     1 while the view stays at the end of a run that is being written
 * @property {string} followed 1 while the selected microbatch is followed across its stages
 * @property {string} seek     what is searched for
 */
/** @typedef {import("../base/lit.js").Target} Target */
/**
 * @typedef {object} Host  the page around the timeline
 * @property {import("../base/store.js").Part<TimelineState>} store
 * @property {import("./trace/tracks.js").Tracks | null} tracks  the trace in view
 * @property {string} trace  what names it in a question: its number, or the words of a plan
 * @property {Target | null} pinned
 * @property {(target: Target | null) => void} hover     lights a target in every view
 * @property {(span: number, rank: number) => void} pin  pins a span, -1 for the rank of its row
 * @property {() => void} shown                          more is known of what is pinned
 * @property {() => Promise<unknown>} refresh            asks for the trace in view again
 * @property {(figure: string) => void} warm             colours the map by a figure of the trace
 * @property {() => void} moved                          the view has changed by hand
 * @property {(error: unknown) => void} fail             says what the server refused
 */

/** @type {Readonly<TimelineState>} */
export const TIMELINE_DEFAULTS = Object.freeze({
  time: "",
  by: "",
  folded: "",
  colour: "",
  range: "",
  plan: "",
  live: "",
  followed: "",
  seek: "",
});
