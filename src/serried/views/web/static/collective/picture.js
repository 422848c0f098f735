// One algorithm in the player: its canvas, and above it the facts of the moment.

import { Surface } from "../base/canvas/surface.js";
import { make } from "../base/dom.js";
import { counted, t } from "../base/i18n.js";
import { theme } from "../base/theme.js";
import { Figure } from "./figure.js";
import { Hues } from "./hues.js";
import { paintMoment } from "./paint.js";
import { paintMeetings, roomForMeetings } from "./work.js";
import { factsOf, placeName, stepLine, titleOf } from "./words.js";

/** @typedef {import("./execution.js").Execution} Execution */
/** @typedef {import("./words.js").Fact} Fact */

/** Shows one execution at a moment. */
export class Picture {
  constructor() {
    this.caption = make("figcaption");
    this.canvas = make("canvas", { role: "img" });
    this.frame = make("div", { class: "frame" }, this.canvas);
    this.element = make("figure", { class: "collective" }, this.caption, this.frame);
    this.surface = new Surface(this.canvas, this.frame);
    /** @type {Execution | null} */
    this.execution = null;
    this.said = "";
  }

  /**
   * Draws a moment.
   * @param {Execution} execution
   * @param {number} steps  steps done, with the share of the next
   * @param {number} time   seconds since it was launched
   */
  show(execution, steps, time) {
    this.execution = execution;
    this._tell(execution, steps, time);
    this.surface.resize();
    const { width, height } = this.surface;
    paintExecution(this.surface.begin(), execution, steps, { width, height });
  }

  /** @param {Execution} execution @param {number} steps @param {number} time */
  _tell(execution, steps, time) {
    const line = stepLine(execution, steps);
    const facts = factsOf(execution, steps, time);
    const told = [titleOf(execution), line, ...facts.map(({ value }) => value)].join(" · ");
    if (told === this.said) return;
    this.said = told;
    this.canvas.setAttribute("aria-label", told);
    this.caption.replaceChildren(
      make("b", {}, titleOf(execution)),
      make("span", {}, line),
      make("dl", {}, ...facts.map(factElement)),
    );
  }
}

/** @param {Fact} fact */
function factElement({ term, value }) {
  return make("div", {}, make("dt", {}, t(`collective.${term}`)), make("dd", {}, value));
}

/**
 * Draws a moment into a box at the corner of a canvas.
 * @param {CanvasRenderingContext2D} context
 * @param {Execution} execution
 * @param {number} steps
 * @param {{width: number, height: number}} box
 */
export function paintExecution(context, execution, steps, { width, height }) {
  const { places, owner, num_ranks: ranks, is_grouped: isGrouped } = execution.header;
  const colours = theme();
  const blocks = isGrouped ? 0 : execution.numBlocks;
  const aside = roomForMeetings(execution, width, height);
  const scenery = {
    context,
    execution,
    figure: new Figure(places, blocks, width - aside, height, execution.hasWork),
    hues: new Hues(owner, ranks, colours.dark),
    theme: colours,
    steps,
    say,
  };
  paintMoment(scenery);
  if (aside)
    paintMeetings(scenery, { left: width - aside, side: aside - 16 }, t("collective.meetings"));
}

/** @type {import("./scenery.js").Say} */
function say(name, values) {
  if (name === "pairs") return counted("collective.pairs", values.pairs);
  return name === "node"
    ? placeName({ rank: -1, ranks: 1, node: values.node, nodes: 1 })
    : t(`collective.${name}`, values);
}
