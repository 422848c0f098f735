// The state of the collective player: which collective over which group, how it is shown, and when.

/**
 * @typedef {object} CollectiveState
 * @property {string} collective     its name; "" while the player is closed
 * @property {string} collective_of  KIND:RANK: the group of that kind that the rank is in
 * @property {string} algorithm      one, or two to compare, joined by a comma; "" for the quickest
 * @property {string} bytes          of the buffer, as nccl-tests count it: 1GiB
 * @property {string} priced         plan where the plan of the job says bytes and network
 * @property {string} split          how attention deals a sequence out; "" as by default
 * @property {string} mask           what queries see in attention; "" as by default
 * @property {string} step           steps done of the first one, with the share of the next: 3.25
 * @property {string} frames         1 for numbered frames, 0 for one picture, "" as the system asks
 */

/**
 * @typedef {object} Offers  what can be asked for
 * @property {Record<string, Record<string, string[]>>} algorithms  of each collective, each with
 *   which of the choices it takes
 * @property {Record<string, string[]>} choices  split and mask, the default first
 */

/** @type {Readonly<CollectiveState>} */
export const COLLECTIVE_DEFAULTS = Object.freeze({
  collective: "",
  collective_of: "",
  algorithm: "",
  bytes: "1GiB",
  priced: "",
  split: "",
  mask: "",
  step: "",
  frames: "",
});

/** Most algorithms side by side. */
const MOST_BESIDE = 2;

/** Steps that are drawn at once; more are a page of their own around the moment. */
export const MOST_FRAMES = 64;

/** What a group of a dimension usually runs; any other runs an all-reduce. */
const USUAL = /** @type {Record<string, string>} */ ({
  cp: "attention",
  ep: "all-to-all",
  pp: "send-receive",
});

/** Returns the collective that a group of a dimension is shown with first. @param {string} dim */
export function usualFor(dim) {
  return USUAL[dim] ?? "all-reduce";
}

/** Returns the algorithms that a state asks for; one "" for the quickest. @param {string} text */
export function algorithmsOf(text) {
  const names = text.split(",").map((name) => name.trim());
  const asked = [names[0], ...names.slice(1).filter(Boolean)];
  return [...new Set(asked)].slice(0, MOST_BESIDE);
}

/**
 * Returns what a state chooses of an algorithm, as far as it takes any; of the quickest, as far as
 * any algorithm does.
 * @param {CollectiveState} state
 * @param {string} algorithm
 * @param {Offers} offers
 */
export function chosenOf({ collective, split, mask }, algorithm, offers) {
  const known = offers.algorithms[collective] ?? {};
  const takes = algorithm ? (known[algorithm] ?? []) : Object.values(known).flat();
  const chosen = Object.entries({ split, mask }).filter(
    ([word, value]) => value && takes.includes(word),
  );
  return Object.fromEntries(chosen);
}

/**
 * Returns a group as the server takes it; null where the words name none.
 * @param {string} text
 */
export function groupOf(text) {
  const at = text.lastIndexOf(":");
  const rank = text.slice(at + 1);
  return at > 0 && /^\d+$/.test(rank) ? { kind: text.slice(0, at), rank } : null;
}

/** Reads the moment of a state: steps done, 0 where it holds none. @param {string} text */
export function stepOf(text) {
  const steps = Number(text);
  return Number.isFinite(steps) && steps > 0 ? steps : 0;
}

/** Writes a moment for the address, "" for the beginning. @param {number} steps */
export function stepText(steps) {
  return steps > 0 ? String(Number(steps.toFixed(2))) : "";
}

/**
 * Returns the steps that are drawn: all, or a page of them around the one of the moment.
 * @param {number} count
 * @param {number} now
 */
export function pageOf(count, now) {
  const page = Math.floor(Math.min(now, Math.max(0, count - 1)) / MOST_FRAMES);
  return { first: page * MOST_FRAMES, end: Math.min(count, (page + 1) * MOST_FRAMES) };
}
