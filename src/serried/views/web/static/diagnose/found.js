// What a diagnosis says, as it is asked of the server.

/** @typedef {{source: string, line: number, text: string}} Quote */
/** @typedef {{rank: number, waits_for: number[], what: string, directly: boolean}} Waiting */
/**
 * @typedef {object} Box  ranks that wait in the same for the same ranks; level 0 holds the culprits
 * @property {number[]} ranks      the first of them
 * @property {number} num_ranks
 * @property {string} named        its ranks in words
 * @property {string[]} what       what they wait in
 * @property {number[]} waits_for  the boxes that they wait for
 * @property {number} level        how many waits away from the culprits it is
 */
/**
 * @typedef {object} Finding
 * @property {string} verdict
 * @property {string} class
 * @property {string} kind
 * @property {number[] | null} ranks  the first culprits; null where none can be told
 * @property {string[]} chain
 * @property {string[]} cures
 * @property {Quote[]} evidence
 * @property {string[]} [summary]  in three lines; none where nothing was found
 * @property {Box[]} [drawing]     its chain, level by level
 */
/**
 * @typedef {Finding & {missing_evidence: string[], notes: string[], findings: Finding[]}} Diagnosis
 */
/** @typedef {Finding & {waiting: Waiting[]}} WholeFinding  with all culprits, and all who wait */
/** @typedef {WholeFinding & {findings: WholeFinding[]}} WholeDiagnosis */
/**
 * @typedef {object} Case  one diagnosis, told in each language
 * @property {string} name
 * @property {Record<string, string | string[]>} question  asks for its layout
 * @property {Record<string, Diagnosis>} in
 * @property {number | null} read_at  when its evidence was read, in seconds since 1970
 * @property {number} revision        how often its evidence told something else since
 * @property {boolean} is_followed    whether its evidence may change
 */

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
 * Returns the number of the finding in a fresh diagnosis that is of the same kind and ranks as one
 * of an older; "" where there is none.
 * @param {Diagnosis} fresh
 * @param {Finding} old
 */
export function sameFinding(fresh, old) {
  const named = (/** @type {Finding} */ { kind, ranks }) => `${kind} ${ranks?.join(" ") ?? ""}`;
  const at = fresh.findings.findIndex((each) => named(each) === named(old));
  return at > 0 ? String(at) : "";
}
