// Whole numbers as runs, as addresses hold them: "0-3,7".

/** Writes numbers as runs, ascending. @param {Iterable<number>} numbers */
export function runsText(numbers) {
  /** @type {[number, number][]} */
  const runs = [];
  for (const each of [...numbers].sort((one, other) => one - other)) {
    const last = runs[runs.length - 1];
    if (last && last[1] === each - 1) last[1] = each;
    else runs.push([each, each]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}

/**
 * Reads runs of numbers below `limit`, ascending, each once; words that are none are passed over.
 * @param {string} text
 * @param {number} limit
 */
export function readRuns(text, limit) {
  /** @type {Set<number>} */
  const found = new Set();
  for (const word of text.split(",")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(word);
    if (!match) continue;
    for (
      let each = Number(match[1]);
      each <= Math.min(limit - 1, Number(match[2] ?? match[1]));
      each++
    )
      found.add(each);
  }
  return [...found].sort((one, other) => one - other);
}
