// What lights up: the ranks that belong to a target, kind by kind.

/** @typedef {import("./scene.js").Scene} Scene */
/**
 * @typedef {{type: "rank", rank: number}
 *   | {type: "group", kind: number, group: number}
 *   | {type: "ranks", ranks: Int32Array}
 *   | {type: "slice", slice: number, rank: number}} Target
 */
/**
 * @typedef {object} Lit
 * @property {number} rank              the rank itself, -1 for a group
 * @property {Int32Array[]} byKind      its peers in each kind in view, itself included
 * @property {Int32Array} ranks         all of them, ascending, each once
 */

const NONE = new Int32Array(0);
/** Lists are sorted where they hold less than one rank of so many. */
const SORTED_BELOW = 16;

/**
 * Returns what a target lights up in a scene; null when it lies outside.
 * @param {Scene} scene
 * @param {Target | null} target
 * @returns {Lit | null}
 */
export function litBy(scene, target) {
  if (!target) return null;
  if (target.type === "ranks") {
    const byKind = scene.kinds.map(() => target.ranks);
    return { rank: -1, byKind, ranks: target.ranks };
  }
  if (target.type === "group") {
    if (!scene.kinds[target.kind] || target.group >= scene.numGroups(target.kind)) return null;
    const ranks = scene.members(target.kind, target.group);
    const byKind = scene.kinds.map((_, kind) => (kind === target.kind ? ranks : NONE));
    return { rank: -1, byKind, ranks: Int32Array.from(ranks).sort() };
  }
  if (target.rank < 0 || target.rank >= scene.worldSize) return null;
  const byKind = scene.kinds.map((_, kind) => peers(scene, kind, target.rank));
  const ranks = union([Int32Array.of(target.rank), ...byKind], scene.worldSize);
  return { rank: target.rank, byKind, ranks };
}

/**
 * Returns the ranks that share a group of the `kind`-th kind with `rank`, itself included.
 * @param {Scene} scene
 * @param {number} kind
 * @param {number} rank
 */
function peers(scene, kind, rank) {
  const { group, overlaps } = scene.kinds[kind];
  if (group[rank] < 0) return NONE;
  if (!overlaps) return scene.members(kind, group[rank]);
  const found = [];
  for (let g = 0; g < scene.numGroups(kind); g++) {
    const ranks = scene.members(kind, g);
    if (ranks.includes(rank)) found.push(ranks);
  }
  return union(found, scene.worldSize);
}

/**
 * Returns all ranks of several lists, ascending, each once.
 * @param {Int32Array[]} lists
 * @param {number} world
 */
function union(lists, world) {
  if (lists.some(({ length }) => length >= world)) return everyone(world);
  const total = lists.reduce((sum, { length }) => sum + length, 0);
  return total * SORTED_BELOW < world ? sorted(lists, total) : marked(lists, world);
}

let all = NONE;

/** Returns the ranks of a world, the same list until another is asked for. @param {number} world */
function everyone(world) {
  if (all.length !== world) all = Int32Array.from({ length: world }, (_, rank) => rank);
  return all;
}

/** Marks each rank: what takes longer for few of many, and far less for most of them. */
/** @param {Int32Array[]} lists @param {number} world */
function marked(lists, world) {
  const isIn = new Uint8Array(world);
  let count = 0;
  for (const ranks of lists)
    for (const rank of ranks) {
      if (!isIn[rank]) count++;
      isIn[rank] = 1;
    }
  const found = new Int32Array(count);
  for (let rank = 0, kept = 0; kept < count; rank++) if (isIn[rank]) found[kept++] = rank;
  return found;
}

/** @param {Int32Array[]} lists @param {number} total */
function sorted(lists, total) {
  const joined = new Int32Array(total);
  let length = 0;
  for (const ranks of lists) {
    joined.set(ranks, length);
    length += ranks.length;
  }
  joined.sort();
  let kept = 0;
  for (let i = 0; i < length; i++)
    if (!i || joined[i] !== joined[i - 1]) joined[kept++] = joined[i];
  return joined.subarray(0, kept);
}
