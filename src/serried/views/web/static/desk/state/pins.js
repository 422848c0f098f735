// What is pinned, as the state holds it: a rank, a group, a slice, or the ranks of a search.

import { matchingRanks, readSearch } from "../../map/search.js";

/** @typedef {import("./fields.js").State} State */
/** @typedef {import("../../base/scene.js").Scene} Scene */
/** @typedef {import("../../timeline/trace/tracks.js").Tracks} Tracks */
/** @typedef {import("../../base/lit.js").Target} Target */

const NOTHING = { rank: "", pinned_group: "", slice: "", find: "" };

/**
 * Returns the state's words for a target; null pins nothing.
 * @param {Target | null} target
 * @param {Scene | null} scene
 * @param {Tracks | null} tracks
 */
export function pinWords(target, scene, tracks) {
  if (target?.type === "rank") return { ...NOTHING, rank: String(target.rank) };
  if (target?.type === "slice") return { ...NOTHING, slice: tracks?.nameOf(target.slice) ?? "" };
  if (target?.type === "group" && scene)
    return { ...NOTHING, pinned_group: `${scene.kinds[target.kind].kind}:${target.group}` };
  return { ...NOTHING };
}

/**
 * Returns the target that a state pins; null where it pins nothing that is there.
 * @param {State} state
 * @param {Scene | null} scene
 * @param {Tracks | null} tracks
 * @returns {Target | null}
 */
export function pinnedTarget(state, scene, tracks) {
  const slice = tracks && state.slice ? tracks.idOf(state.slice) : -1;
  if (tracks && slice >= 0) return { type: "slice", slice, rank: tracks.rankOf(slice) };
  if (!scene) return null;
  const rank = whole(state.rank);
  if (rank >= 0 && rank < scene.worldSize) return { type: "rank", rank };
  const [name, number] = state.pinned_group.split(":");
  const kind = scene.kinds.findIndex((each) => each.kind === name);
  const group = whole(number ?? "");
  if (kind >= 0 && group >= 0 && group < scene.numGroups(kind))
    return { type: "group", kind, group };
  const wishes = state.find ? readSearch(state.find) : null;
  const ranks = wishes && matchingRanks(scene, wishes);
  return ranks?.length ? { type: "ranks", ranks } : null;
}

/** Returns a whole number, -1 for anything else. @param {string} text */
function whole(text) {
  return /^\d+$/.test(text) ? Number(text) : -1;
}
