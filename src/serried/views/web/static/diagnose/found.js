// What a diagnosis says, as it is asked of the server, and how those who wait stand in its chain.

/** @typedef {{source: string, line: number, text: string}} Quote */
/** @typedef {{rank: number, waits_for: number[], what: string, directly: boolean}} Waits */
/**
 * @typedef {object} Finding
 * @property {string} verdict
 * @property {string} class
 * @property {string} kind
 * @property {number[] | null} ranks  the culprits; null where none can be told
 * @property {string[]} groups
 * @property {Waits[]} waiting
 * @property {string[]} chain
 * @property {string[]} cures
 * @property {Quote[]} evidence
 * @property {number} confidence
 */
/**
 * @typedef {Finding & {missing_evidence: string[], notes: string[], findings: Finding[]}} Diagnosis
 */
/**
 * @typedef {object} Case  one diagnosis, told in each language
 * @property {string} name
 * @property {Record<string, string | string[]>} question  asks for its layout
 * @property {Record<string, Diagnosis>} in
 */
/** @typedef {{what: string, ranks: number[]}} Link  ranks that wait in the same */

/**
 * Returns the finding in view: the one that is asked for, else the first, else that all is well.
 * @param {Diagnosis} diagnosis
 * @param {string} number
 * @returns {Finding}
 */
export function findingOf(diagnosis, number) {
  return diagnosis.findings[Number(number) || 0] ?? diagnosis.findings[0] ?? diagnosis;
}

/**
 * Returns those who wait, those for a culprit itself before those who wait through others; within
 * each, ranks that wait in the same stand together.
 * @param {Finding} finding
 * @returns {{direct: Link[], indirect: Link[]}}
 */
export function linksOf({ waiting }) {
  return { direct: linksAmong(waiting, true), indirect: linksAmong(waiting, false) };
}

/** @param {Waits[]} waiting @param {boolean} directly @returns {Link[]} */
function linksAmong(waiting, directly) {
  /** @type {Map<string, number[]>} */
  const ranks = new Map();
  for (const each of waiting.filter((one) => one.directly === directly))
    ranks.set(each.what, [...(ranks.get(each.what) ?? []), each.rank]);
  return [...ranks].map(([what, of]) => ({ what, ranks: of }));
}
