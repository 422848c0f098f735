// What the player says of a moment: its step, bytes, link and time, as text beside the picture.

import { duration } from "../base/clock.js";
import { byId, make } from "../base/dom.js";
import { explained } from "../base/explained.js";
import { counted, number, t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";

/** @typedef {import("./execution.js").Execution} Execution */
/** @typedef {import("./execution.js").Link} Link */
/** @typedef {{term: string, value: string}} Fact */

const MOVES_WRITTEN = 96;
const BLOCKS_WRITTEN = 6;

/** Says what the collective is for, what it costs, and what goes wrong. @param {Execution} of */
export function showExplained({ header: { explanation } }) {
  byId("collective-explained").replaceChildren(...explained(explanation));
}

/**
 * Says what the plan of the job runs over the group, each to be shown in place of this one.
 * @param {Execution} of
 * @param {(collective: string) => void} choose
 */
export function showPlanned({ header: { planned } }, choose) {
  const uses = (planned?.uses ?? []).map(({ collective, bytes, times, step_s }) =>
    make(
      "button",
      { type: "button", click: () => choose(collective) },
      t(times === 1 ? "collective.planned_once" : "collective.planned_use", {
        collective,
        bytes: bytesText(bytes),
        times: number(Math.round(times)),
        time: duration(step_s * 1e9),
      }),
    ),
  );
  const { model = "", cluster = "" } = planned ?? {};
  const words = planned ? t("collective.planned_of", { model, cluster }) : "";
  byId("collective-planned").replaceChildren(
    words,
    ...(planned && !uses.length ? [t("collective.planned_none")] : uses),
  );
}

/** Names a collective by its algorithm. @param {Execution} execution */
export function titleOf({ header: { name, algorithm } }) {
  return t("collective.name", { name, algorithm });
}

/**
 * Returns the step that a moment is in, counted from 1; the last one where all are done.
 * @param {Execution} execution
 * @param {number} steps
 */
export function stepNumber(execution, steps) {
  return Math.min(execution.numSteps, Math.floor(steps + 1e-9) + 1);
}

/**
 * Writes which step a moment is in, or that all are done.
 * @param {Execution} execution
 * @param {number} steps
 */
export function stepLine(execution, steps) {
  const values = { count: number(execution.numSteps) };
  if (!execution.numSteps) return t("collective.alone");
  if (steps >= execution.numSteps) return t("collective.done", values);
  return t("collective.step", { step: number(stepNumber(execution, steps)), ...values });
}

/** Writes over what links a step goes. @param {Link[]} links */
export function linkText(links) {
  if (!links.length) return t("collective.no_link");
  const across = links.some((link) => link.across);
  const inside = links.some((link) => !link.across);
  if (across && inside) return t("collective.both");
  return t(across ? "collective.across" : "collective.in_node");
}

/**
 * Returns what is told of a moment.
 * @param {Execution} execution
 * @param {number} steps
 * @param {number} time  seconds since it was launched
 * @returns {Fact[]}
 */
export function factsOf(execution, steps, time) {
  const { header, numSteps, seconds, stepBytes, sentBytes } = execution;
  if (!numSteps) return [];
  const now = stepNumber(execution, steps) - 1;
  const done = Math.min(numSteps, Math.floor(steps + 1e-9));
  const sent = done ? sentBytes[done - 1] : 0;
  const passed = Math.min(time, execution.total);
  return [
    { term: "sends", value: bytesText(stepBytes[now]) },
    { term: "link", value: linkText(execution.links(now)) },
    ...(execution.hasWork ? [{ term: "computes", value: pairsText(execution, now) }] : []),
    { term: "takes", value: duration(seconds[now] * 1e9) },
    {
      term: "so_far",
      value: `${duration(passed * 1e9)} / ${duration(execution.total * 1e9)}`,
    },
    { term: "sent", value: `${bytesText(sent)} / ${bytesText(sentBytes[numSteps - 1])}` },
    { term: "formula", value: header.formula },
  ];
}

/**
 * Writes how many pairs a rank computes in a step, and in all: the least and the most of all ranks.
 * @param {Execution} execution
 * @param {number} step
 */
function pairsText(execution, step) {
  const [now, all] = [execution.pairsIn(step), execution.pairsAfter(execution.numSteps)].map(
    (pairs) => [...new Set([Math.min(...pairs), Math.max(...pairs)])].map(number).join("–"),
  );
  return t("collective.pairs_of", { now, all });
}

/**
 * Writes the moves of a step, a line each, as far as they can be read.
 * @param {Execution} execution
 * @param {number} steps
 */
export function moveLines(execution, steps) {
  if (!execution.numSteps) return [];
  const links = execution.links(stepNumber(execution, steps) - 1);
  const lines = links.slice(0, MOVES_WRITTEN).map((link) => moveLine(execution, link));
  const left = links.length - lines.length;
  return left > 0 ? [...lines, counted("collective.more_moves", left)] : lines;
}

/** @param {Execution} execution @param {Link} link */
function moveLine({ header }, link) {
  const name = (/** @type {number} */ place) => placeName(header.places[place]);
  const bytes = bytesText(link.count * header.block_bytes);
  const shown = link.blocks.slice(0, BLOCKS_WRITTEN).map(String);
  if (link.blocks.length > shown.length) shown.push("…");
  const values = { from: name(link.source), to: name(link.target), bytes };
  if (!link.blocks.length)
    return t("collective.moves", { ...values, moves: counted("collective.messages", link.moves) });
  return t(link.reduces ? "collective.adds" : "collective.copies", {
    ...values,
    blocks: shown.join(", "),
  });
}

/** @param {import("./execution.js").Place} place */
export function placeName({ rank, ranks, node, nodes }) {
  if (rank >= 0) return t("timeline.rank", { rank });
  if (!ranks) return t("collective.switch", { node });
  return nodes > 1
    ? t("collective.nodes", { first: node, last: node + nodes - 1 })
    : t("map.node", { number: node });
}
