// The plan that the server answered, and what a picture of it stacks: of each place in the pipeline
// its items of memory, of the step its parts. All figures are the server's.

/**
 * @typedef {object} PlannedPlace  a place in the pipeline
 * @property {number[]} stages
 * @property {number} first_rank
 * @property {Record<string, number>} items  bytes
 * @property {number} total
 * @property {number} card
 * @property {boolean} fits
 */
/**
 * @typedef {object} PlannedTransfer
 * @property {string} kind
 * @property {string} collective
 * @property {number} ranks
 * @property {number} size_bytes
 * @property {number} sent_bytes
 * @property {number} times
 * @property {string} link
 * @property {string} beside
 */
/**
 * @typedef {object} PlanAnswer  the document of `serried plan`, with words and colours
 * @property {string} verdict
 * @property {boolean} fits
 * @property {string} job  what is planned, in one line
 * @property {PlannedPlace[]} memory
 * @property {PlannedTransfer[]} traffic
 * @property {{verdict: string, step_s: number, parts_s: Record<string, number>}} time
 * @property {string} flops_convention
 * @property {Record<string, number>} mfu_by_convention
 * @property {string} command
 * @property {{memory: Record<string, string>, time: Record<string, string>,
 *   traffic: Record<string, string>}} words  in the order in which they are stacked
 * @property {Record<string, string>} colours
 */
/**
 * @typedef {object} Part  a part of a bar
 * @property {string} name
 * @property {number} from
 * @property {number} to
 */

/**
 * Stacks values in the order of `names`; what stands in none of them follows, nothing is left out.
 * @param {Record<string, number>} values
 * @param {string[]} names
 * @returns {Part[]}
 */
export function stacked(values, names) {
  const others = Object.keys(values).filter((name) => !names.includes(name));
  let from = 0;
  return [...names, ...others]
    .filter((name) => values[name] > 0)
    .map((name) => ({ name, from, to: (from += values[name]) }));
}

/** Returns the items that any place holds, in the order of a bar. @param {PlanAnswer} plan */
export function itemsOf({ memory, words }) {
  const all = Object.assign({}, ...memory.map(({ items }) => items));
  const names = stacked(all, Object.keys(words.memory)).map(({ name }) => name);
  return names.map((name) => ({ name, bytes: memory.map(({ items }) => items[name] ?? 0) }));
}

/** Returns the parts of the step, in the order of its bar. @param {PlanAnswer} plan */
export function partsOf({ time, words }) {
  return stacked(time.parts_s, Object.keys(words.time));
}

/** Names the stages of a place, such as 0 or 0+4. @param {PlannedPlace} place */
export function stagesText({ stages }) {
  return stages.join("+");
}
