// The layouts that a search found, as the server answered them, and what each makes of the job.

/** @typedef {{kind: string, modules: string[]}} Recomputed  what a backward computes again */
/**
 * @typedef {object} FoundLayout
 * @property {{sizes: Record<string, number>, schedule: string, stage_layers: number[],
 *   order: string, micro_batch: number, zero: number, recompute: Recomputed}} asked
 * @property {number} step_s
 * @property {number} tokens_per_s_gpu
 * @property {number} peak_bytes
 * @property {number} card_bytes
 * @property {string} why_not
 */
/**
 * @typedef {object} FoundCloud  all layouts that fit, as columns
 * @property {{schedule: string, zero: number, recompute: Recomputed, orders: string[]}[]} manners
 * @property {number[]} manner      of each layout, its place in `manners`
 * @property {number[]} tp
 * @property {number[]} pp
 * @property {number[]} cp
 * @property {number[]} dp
 * @property {number[]} ep
 * @property {number[]} etp
 * @property {number[]} chunks
 * @property {number[]} micro_batch
 * @property {number[]} order       its place in the manner's `orders`, -1 where none is chosen
 * @property {boolean[]} is_even    whether all stages have as many layers
 * @property {number[]} step_s
 * @property {number[]} peak_bytes
 */
/**
 * @typedef {object} FoundAnswer  the document of `serried search`, and its command
 * @property {string} verdict
 * @property {FoundLayout[]} best    the quickest first
 * @property {FoundLayout[]} pareto  those that none beats in both step and memory, quickest first
 * @property {FoundLayout[]} misses  where nothing fits, those that lack least
 * @property {FoundCloud} cloud
 * @property {{recompute: Record<string, string>}} words
 * @property {string} command
 */
/**
 * @typedef {object} Mark  a layout in the picture of step and memory
 * @property {FoundLayout} layout
 * @property {"cloud" | "front" | "best"} role  best: of the table
 */

const AXES = ["tp", "pp", "cp", "dp", "ep"];

/** Returns the layouts of the table: the best, or the nearest misses. @param {FoundAnswer} found */
export function rowsOf({ best, misses }) {
  return best.length ? best : misses;
}

/**
 * Returns what the picture shows: the cloud, then those of the table, then the front above all.
 * @param {FoundAnswer} found
 * @returns {Mark[]}
 */
export function marksOf({ best, cloud, pareto }) {
  const card = best[0]?.card_bytes ?? 0;
  const edge = Math.max(...cloud.step_s, ...best.map(({ step_s: step }) => step));
  const front = pareto.filter(({ step_s: step }) => step <= edge);
  const of = (/** @type {FoundLayout[]} */ layouts, /** @type {Mark["role"]} */ role) =>
    layouts.map((layout) => ({ layout, role }));
  const behind = cloud.step_s.map((_, row) => cloudLayout(cloud, row, card));
  return [...of(behind, "cloud"), ...of(best, "best"), ...of(front, "front")];
}

/** @param {FoundCloud} cloud @param {number} row @param {number} card @returns {FoundLayout} */
function cloudLayout(cloud, row, card) {
  const { tp, pp, cp, dp, ep, etp, chunks } = cloud;
  const { schedule, zero, recompute, orders } = cloud.manners[cloud.manner[row]];
  const columns = Object.entries({ tp, pp, cp, dp, ep, etp, chunks });
  return {
    asked: {
      sizes: Object.fromEntries(columns.map(([name, column]) => [name, column[row]])),
      schedule,
      order: orders[cloud.order[row]] ?? "",
      stage_layers: cloud.is_even[row] ? [1] : [1, 2],
      micro_batch: cloud.micro_batch[row],
      zero,
      recompute,
    },
    step_s: cloud.step_s[row],
    tokens_per_s_gpu: 0,
    peak_bytes: cloud.peak_bytes[row],
    card_bytes: card,
    why_not: "",
  };
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
  const { micro_batch, order, recompute, schedule, sizes, stage_layers: layers, zero } = asked;
  const isUneven = layers.some((count) => count !== layers[0]);
  return {
    tp: String(sizes.tp),
    pp: String(sizes.pp),
    cp: String(sizes.cp),
    ep: String(sizes.ep),
    etp: sizes.etp === sizes.tp ? "" : String(sizes.etp),
    order,
    zero: String(zero),
    micro_batch: String(micro_batch),
    recompute: [recompute.kind, recompute.modules.join(",")].filter(Boolean).join(":"),
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
