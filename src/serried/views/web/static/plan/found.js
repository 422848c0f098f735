// The layouts that a search found, as the server answered them, and what each makes of the job.

/**
 * @typedef {object} FoundLayout
 * @property {{sizes: Record<string, number>, schedule: string, stage_layers: number[],
 *   micro_batch: number, zero: number, recompute: {kind: string}}} asked
 * @property {number} step_s
 * @property {number} tokens_per_s_gpu
 * @property {number} peak_bytes
 * @property {number} card_bytes
 * @property {string} why_not
 */
/**
 * @typedef {object} FoundAnswer  the document of `serried search`, and its command
 * @property {string} verdict
 * @property {FoundLayout[]} best    the quickest first
 * @property {FoundLayout[]} pareto  those that none beats in both step and memory, quickest first
 * @property {FoundLayout[]} misses  where nothing fits, those that lack least
 * @property {string} command
 */

const AXES = ["tp", "pp", "cp", "dp", "ep"];

/** Returns the layouts of the table: the best, or the nearest misses. @param {FoundAnswer} found */
export function rowsOf({ best, misses }) {
  return best.length ? best : misses;
}

/** Names a layout by its degrees above 1: tp 2 pp 4. @param {FoundLayout} layout */
export function layoutName({ asked: { sizes } }) {
  const told = AXES.filter((axis) => sizes[axis] > 1).map((axis) => `${axis} ${sizes[axis]}`);
  return told.join(" ") || "dp 1";
}

/** Names a schedule, with its chunks where they are chosen. @param {FoundLayout} layout */
export function scheduleName({ asked: { schedule, sizes } }) {
  return schedule === "interleaved-1f1b" ? `${schedule} x${sizes.chunks}` : schedule;
}

/**
 * Returns what a layout makes of the state: the job's sizes, and the plan's schedule and batch.
 * @param {FoundLayout} layout
 * @returns {Record<string, string>}
 */
export function changeOf({ asked }) {
  const { micro_batch, recompute, schedule, sizes, stage_layers: layers, zero } = asked;
  const isUneven = layers.some((count) => count !== layers[0]);
  return {
    tp: String(sizes.tp),
    pp: String(sizes.pp),
    cp: String(sizes.cp),
    ep: String(sizes.ep),
    etp: sizes.etp === sizes.tp ? "" : String(sizes.etp),
    zero: String(zero),
    micro_batch: String(micro_batch),
    recompute: recompute.kind,
    schedule,
    plan_chunks: schedule === "interleaved-1f1b" ? String(sizes.chunks) : "",
    account_for: isUneven ? "embedding,loss" : "",
  };
}

/**
 * Tells whether a state holds what a layout would make of it.
 * @param {Record<string, string>} state
 * @param {FoundLayout} layout
 */
export function isPicked(state, layout) {
  return Object.entries(changeOf(layout)).every(([field, value]) => state[field] === value);
}
