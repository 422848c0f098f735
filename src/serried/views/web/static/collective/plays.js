// Under Learn: every collective there is, each to be played on the map over a group of this job.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";

/** @typedef {{dim: string, ranks: number, group: string}} PlayGroup  group as KIND:RANK */

/** Dimensions whose groups run a collective, likeliest first; others run on any. */
const RUN_BY = /** @type {Record<string, string[]>} */ ({
  attention: ["cp"],
  "all-to-all": ["ep", "cp"],
  "send-receive": ["pp"],
});

/**
 * Returns the group that a collective is shown on: of a dimension that runs it, else the largest.
 * @param {string} collective
 * @param {PlayGroup[]} groups
 */
export function playedOn(collective, groups) {
  const able = groups.filter(({ ranks }) => ranks > 1);
  const wanted = RUN_BY[collective] ?? ["dp", "tp"];
  const [likely] = wanted.flatMap((dim) => able.filter((group) => group.dim === dim));
  return likely ?? able.toSorted((one, other) => other.ranks - one.ranks)[0] ?? null;
}

/**
 * Lists the collectives.
 * @param {string[]} collectives
 * @param {PlayGroup[]} groups  of the job in view, one of each kind
 * @param {(collective: string, group: string) => void} play
 */
export function showPlays(collectives, groups, play) {
  const items = collectives.flatMap((name) => {
    const on = playedOn(name, groups);
    if (!on) return [];
    const click = () => play(name, on.group);
    return [make("li", {}, make("button", { type: "button", click }, name))];
  });
  byId("learn-plays").replaceChildren(...items);
  byId("learn-plays-title").textContent = items.length ? t("learn.plays") : "";
}
