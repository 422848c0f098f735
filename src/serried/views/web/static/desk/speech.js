// What is pinned, in words, whichever view it stands in.

import { counted } from "../base/i18n.js";
import { tipLines } from "../map/speech.js";
import { spokenSlice } from "../timeline/speech.js";

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {import("../timeline/trace/tracks.js").Tracks} Tracks */

/**
 * Writes a target in one line.
 * @param {import("../base/lit.js").Target} target
 * @param {Scene | null} scene
 * @param {Tracks | null} tracks
 */
export function spokenTarget(target, scene, tracks) {
  if (target.type === "slice" && tracks) return spokenSlice(target.slice, tracks);
  if (!scene) return "";
  if (target.type === "group") return scene.groupText(target.kind, target.group);
  if (target.type === "ranks") return counted("unit.ranks", target.ranks.length);
  return tipLines(scene, target.rank).join("; ");
}
