// A rank of the map in words: what the tip shows, and what is said aloud.

import { counted, t } from "../base/i18n.js";

/** @typedef {import("../base/scene.js").Scene} Scene */

const MEMBERS_WRITTEN = 12;

/** Writes where a rank is and its groups, a line each. @param {Scene} scene @param {number} rank */
export function tipLines(scene, rank) {
  const where = t("tip.rank", { rank, node: scene.node[rank], local: scene.localRank[rank] });
  const stage =
    scene.job.num_stages > 1 ? ` · ${t("map.stage", { number: scene.stage[rank] })}` : "";
  const groups = scene.kinds.map((kind, i) => {
    const group = kind.group[rank];
    if (group < 0) return t("tip.no_group", { kind: kind.label });
    const members = scene.members(i, group);
    const more =
      members.length > MEMBERS_WRITTEN ? `, … ${counted("unit.ranks", members.length)}` : "";
    return `${kind.label} ${group}: [${members.subarray(0, MEMBERS_WRITTEN).join(", ")}${more}]`;
  });
  return [where + stage, ...groups];
}
