// Reports of checks for the map: links of ranks beside their like, as figures, and what was found
// slow.

import { make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { askDocument } from "../base/questions.js";

/** @typedef {{evidence: string[], cure: string | null}} Told */
/** @typedef {{kind: string, ranks: number[], in: Record<string, Told>}} Found */
/**
 * @typedef {object} Check
 * @property {string} name
 * @property {Record<string, string | string[]>} question
 * @property {string[]} figures
 * @property {Found[]} findings
 */
/**
 * @typedef {{check: Check, number: number, figure: string}} CheckFigure  what a state's heat names
 */

const RANKS_SHOWN = 8;

/** Holds the reports on offer. */
export class Checks {
  constructor() {
    /** @type {Check[]} */
    this.offers = [];
  }

  async open() {
    this.offers = (await askDocument("checks")).checks;
  }

  /** The first figure of the first report, "" without one. */
  get first() {
    return this.heat(0);
  }

  /** Returns the first figure of a report, as a state's heat names it. @param {number} check */
  heat(check) {
    const figure = this.offers[check]?.figures[0];
    return figure ? heatOf(check, figure) : "";
  }

  /**
   * Returns the report and the figure that a state's heat names, null where it names a trace's.
   * @param {string} heat
   * @returns {CheckFigure | null}
   */
  of(heat) {
    const found = /^check(\d{1,3})\.(\w+)$/.exec(heat);
    const check = found && this.offers[Number(found[1])];
    return check ? { check, number: Number(found[1]), figure: found[2] } : null;
  }

  /**
   * Returns choices of figures, one group for each report.
   * @param {(figure: string) => HTMLElement} option
   */
  choices(option) {
    return this.offers
      .filter((check) => check.figures.length)
      .map((check, at) =>
        make(
          "optgroup",
          { label: t("check.title", { name: check.name }) },
          ...check.figures.map((figure) => option(heatOf(at, figure))),
        ),
      );
  }
}

/** @param {number} check @param {string} figure */
function heatOf(check, figure) {
  return `check${check}.${figure}`;
}

/**
 * Returns what a report found, each with its ranks to choose.
 * @param {Check} check
 * @param {(rank: number) => void} choose
 */
export function findings(check, choose) {
  if (!check.findings.length) return [make("p", { class: "note" }, t("check.none"))];
  const items = check.findings.map(({ ranks, in: told }) => {
    const { evidence, cure } = told[language()] ?? told.en;
    const named = ranks
      .slice(0, RANKS_SHOWN)
      .map((rank) =>
        make("button", { type: "button", class: "rank", click: () => choose(rank) }, String(rank)),
      );
    return make(
      "li",
      {},
      ...evidence,
      make("p", { class: "ranks" }, ...named, ranks.length > RANKS_SHOWN ? " …" : ""),
      cure ? make("p", { class: "note" }, cure) : "",
    );
  });
  return [make("h4", {}, t("check.findings")), make("ul", { class: "findings" }, ...items)];
}
