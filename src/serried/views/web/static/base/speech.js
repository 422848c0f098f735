// Targets in words: what the tip shows, and what is said aloud.

import { duration } from "./clock.js";
import { counted, has, t } from "./i18n.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("../timeline/trace/tracks.js").Tracks} Tracks */

const MEMBERS_WRITTEN = 12;

/** Writes where a rank is and its groups, a line each. @param {Scene} scene @param {number} rank */
export function tipLines(scene, rank) {
  const where = t("tip.rank", { rank, node: scene.node[rank], local: scene.localRank[rank] });
  const stage = scene.job.num_stages > 1 ? ` · ${t("map.stage", { number: scene.stage[rank] })}` : "";
  const groups = scene.kinds.map((kind, i) => {
    const group = kind.group[rank];
    if (group < 0) return t("tip.no_group", { kind: kind.label });
    const members = scene.members(i, group);
    const more = members.length > MEMBERS_WRITTEN ? `, … ${counted("unit.ranks", members.length)}` : "";
    return `${kind.label} ${group}: [${members.subarray(0, MEMBERS_WRITTEN).join(", ")}${more}]`;
  });
  return [where + stage, ...groups];
}

/**
 * Writes a target in one line.
 * @param {import("./lit.js").Target} target @param {Scene | null} scene @param {Tracks | null} tracks
 */
export function spokenTarget(target, scene, tracks) {
  if (target.type === "slice" && tracks) return spokenSlice(target.slice, tracks);
  if (!scene) return "";
  if (target.type === "group") return scene.groupText(target.kind, target.group);
  if (target.type === "ranks") return counted("unit.ranks", target.ranks.length);
  return tipLines(scene, target.rank).join("; ");
}

/** Writes a span in one line, nothing while it has not been sent. @param {number} id @param {Tracks} tracks */
export function spokenSlice(id, tracks) {
  const span = tracks.span(id);
  if (!span) return "";
  const name = tracks.actions.get(span.kind)?.name ?? "";
  return t("tip.slice", {
    action: tracks.actionName(span),
    meaning: has(`action.${name}`) ? t(`action.${name}`) : name,
    rank: tracks.rankOf(id),
    duration: duration(span.end - span.start),
  });
}

/**
 * Names a group of rows: itself, how many ranks it has, and how much they computed.
 * @param {import("../timeline/trace/rows.js").Grouping} grouping @param {number} group @returns {[string, string, string]}
 */
export function groupName({ by, label, size, busy, hasRest }, group) {
  const isRest = hasRest && group === size.length - 1;
  const own = has(`heading.${by}`) ? t(`heading.${by}`, { number: group }) : `${label} ${group}`;
  return [
    isRest ? t("timeline.ungrouped") : own,
    counted("unit.ranks", size[group]),
    t("timeline.busy", { share: `${Math.round(100 * busy[group])} %` }),
  ];
}

/**
 * Names a row of the timeline: its rank, then its stage and node where there are several.
 * @param {import("../timeline/trace/tracks.js").Row} row @param {Tracks | null} tracks @returns {[string, string]}
 */
export function rowName({ rank, stage, node }, tracks) {
  const name = t("timeline.rank", { rank });
  if (tracks?.severalNodes) {
    return [name, t(tracks.severalStages ? "timeline.place" : "timeline.node", { stage, node })];
  }
  return [name, tracks?.severalStages ? t("timeline.stage", { stage }) : ""];
}
