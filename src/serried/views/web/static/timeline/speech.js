// Spans, rows and headings of the timeline in words: what is written there, and what is said aloud.

import { duration } from "../base/clock.js";
import { counted, has, t } from "../base/i18n.js";

/** @typedef {import("./trace/tracks.js").Tracks} Tracks */
/** @typedef {import("./paint/picture.js").Names} Names */
/** @typedef {Pick<import("./state.js").Host, "tracks">} Host */

/**
 * Writes a span in one line, nothing while it has not been sent.
 * @param {number} id
 * @param {Tracks} tracks
 */
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
 * @param {import("./trace/rows.js").Grouping} grouping
 * @param {number} group
 * @returns {[string, string, string]}
 */
export function groupName({ by, label, size, busy, hasRest }, group) {
  const isRest = hasRest && group === size.length - 1;
  const own = has(`heading.${by}`) ? t(`heading.${by}`, { number: group }) : `${label} ${group}`;
  return [
    isRest ? t("timeline.ungrouped") : own,
    counted("unit.ranks", size[group]),
    t("timeline.busy", { share: `${Math.round(100 * busy[group])}%` }),
  ];
}

/**
 * Names a row of the timeline: its rank, then its stage and node where there are several.
 * @param {import("./trace/tracks.js").Row} row
 * @param {Tracks | null} tracks
 * @returns {[string, string]}
 */
function rowName({ rank, stage, node }, tracks) {
  const name = t("timeline.rank", { rank });
  if (tracks?.severalNodes) {
    return [name, t(tracks.severalStages ? "timeline.place" : "timeline.node", { stage, node })];
  }
  return [name, tracks?.severalStages ? t("timeline.stage", { stage }) : ""];
}

/**
 * Returns what the timeline writes beside its rows and on its axis.
 * @param {Host} host
 * @returns {Names}
 */
export function namesFor(host) {
  return {
    row: (row) => rowName(row, host.tracks),
    group: groupName,
    step: (step) => t("timeline.step", { step }),
  };
}
