// What the Diagnose panel shows of a finding: its chain as boxes, its evidence, what to do.

import { make } from "../base/dom.js";
import { number, t } from "../base/i18n.js";
import { linksOf } from "./found.js";

/** @typedef {import("./found.js").Finding} Finding */
/** @typedef {import("./found.js").Link} Link */
/** @typedef {(rank: number) => void} Choose */

const RANKS_SHOWN = 16;

/**
 * Returns the chain from the culprits to those who wait through others, none where nobody waits.
 * @param {Finding} finding
 * @param {Choose} choose
 */
export function chainBoxes(finding, choose) {
  const { direct, indirect } = linksOf(finding);
  if (!direct.length && !indirect.length && !finding.ranks?.length) return [];
  const roots = finding.ranks?.length
    ? [{ what: "", ranks: finding.ranks }]
    : [{ what: t("diagnose.nobody"), ranks: [] }];
  const boxes = [box("culprit", "diagnose.culprits", roots, choose)];
  if (direct.length) boxes.push(box("direct", "diagnose.direct", direct, choose));
  if (indirect.length) boxes.push(box("indirect", "diagnose.indirect", indirect, choose));
  return boxes;
}

/** @param {string} kind @param {string} title @param {Link[]} links @param {Choose} choose */
function box(kind, title, links, choose) {
  const ranks = links.reduce((sum, link) => sum + link.ranks.length, 0);
  const count = ranks > 1 ? ` · ${t("diagnose.ranks", { count: number(ranks) })}` : "";
  const rows = links.map((link) =>
    make("li", {}, link.what, make("span", { class: "ranks" }, ...rankButtons(link.ranks, choose))),
  );
  return make("li", { class: kind }, make("h3", {}, t(title) + count), make("ul", {}, ...rows));
}

/** @param {number[]} ranks @param {Choose} choose */
function rankButtons(ranks, choose) {
  const buttons = ranks
    .slice(0, RANKS_SHOWN)
    .map((rank) =>
      make("button", { type: "button", class: "rank", click: () => choose(rank) }, String(rank)),
    );
  return ranks.length > RANKS_SHOWN ? [...buttons, " …"] : buttons;
}

/** Returns the lines that a finding rests on, each with its place. @param {Finding} finding */
export function evidenceItems({ evidence }) {
  return evidence.map(({ source, line, text }) =>
    make("li", {}, make("b", {}, line ? `${source}:${line}` : source), make("code", {}, text)),
  );
}

/** Returns sentences as items of a list. @param {string[]} sentences */
export function items(sentences) {
  return sentences.map((sentence) => make("li", {}, sentence));
}

/** Returns how sure a finding is, in words. @param {Finding} finding */
export function sureness({ confidence }) {
  const level = confidence >= 0.9 ? "sure" : confidence >= 0.6 ? "likely" : "possible";
  return t(`diagnose.${level}`);
}
