// A range of the timeline: a stretch of time over some ranks, drawn with Shift held; and its ranks
// written as runs, as addresses hold them: "0-3,7".

/**
 * @typedef {object} Range  times are nanoseconds of the trace
 * @property {number} start
 * @property {number} end
 * @property {number[]} ranks  ascending
 */

/** Writes a range as the address bar holds it: "12000,48000,0-7". @param {Range | null} range */
export function rangeText(range) {
  return range
    ? `${Math.round(range.start)},${Math.round(range.end)},${runsText(range.ranks)}`
    : "";
}

/**
 * Reads a range; null for what is none.
 * @param {string} text
 * @param {number} worldSize
 * @returns {Range | null}
 */
export function readRange(text, worldSize) {
  const [start, end, ...runs] = text.split(",");
  const ranks = readRuns(runs.join(","), worldSize);
  if (!(text && Number(end) > Number(start) && ranks.length)) return null;
  return { start: Number(start), end: Number(end), ranks };
}

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
