// The search box: "5000", "node 625", "stage 3", "pp=4 tp=0" and mixtures, matched to ranks.

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {{what: string, value: number}} Wish  what: rank, node, stage, local, or an axis */

const WORDS = new Map(
  Object.entries({
    rank: "rank",
    node: "node",
    stage: "stage",
    local: "local",
    节点: "node",
    阶段: "stage",
    本地: "local",
  }),
);

/**
 * Reads what was typed; null when it is not a search.
 * @param {string} text
 * @returns {Wish[] | null}
 */
export function readSearch(text) {
  const tidy = text
    .trim()
    .toLowerCase()
    .replace(/[，,、]/g, " ");
  const pattern = /\s*(?:([a-z]+|节点|阶段|本地)\s*[=:\s]?\s*)?(\d+)(?=\s|$)/gy;
  /** @type {Wish[]} */
  const wishes = [];
  while (pattern.lastIndex < tidy.length) {
    const match = pattern.exec(tidy);
    if (!match) return null;
    const word = match[1] ?? "rank";
    wishes.push({ what: WORDS.get(word) ?? word, value: Number(match[2]) });
  }
  return wishes.length ? wishes : null;
}

/**
 * Returns the ranks that meet every wish; null when a wish names what the layout has not.
 * @param {Scene} scene
 * @param {Wish[]} wishes
 * @returns {Int32Array | null}
 */
export function matchingRanks(scene, wishes) {
  /** @type {((rank: number) => boolean)[]} */
  const tests = [];
  for (const { what, value } of wishes) {
    const test = testFor(scene, what, value);
    if (!test) return null;
    tests.push(test);
  }
  const found = [];
  for (let rank = 0; rank < scene.worldSize; rank++) {
    if (tests.every((test) => test(rank))) found.push(rank);
  }
  return Int32Array.from(found);
}

/**
 * @param {Scene} scene
 * @param {string} what
 * @param {number} value
 * @returns {((rank: number) => boolean) | null}
 */
function testFor(scene, what, value) {
  if (what === "rank") return (rank) => rank === value;
  if (what === "node") return (rank) => scene.node[rank] === value;
  if (what === "stage") return (rank) => scene.stage[rank] === value;
  if (what === "local") return (rank) => scene.localRank[rank] === value;
  const along = scene.axes.get(what);
  if (along) return (rank) => along[rank] === value;
  return what in scene.job.axes ? () => value === 0 : null;
}
