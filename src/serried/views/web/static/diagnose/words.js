// What the Diagnose tab writes of a finding: cards, evidence with its place, sentences.

import { markImage } from "../base/canvas/marks.js";
import { MARK_OF_STATE } from "../base/canvas/states.js";
import { make } from "../base/dom.js";
import { number, t } from "../base/i18n.js";

/** @typedef {import("./found.js").Finding} Finding */

/** What the map tells apart, from the cause to what is not known. */
const STATES = /** @type {const} */ (["culprit", "direct", "indirect", "apart", "not_heard"]);

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

/**
 * Returns a finding as a card that shows it; that of the finding in view, whose words stand beside
 * the cards, names the culprits alone.
 * @param {Finding} finding
 * @param {boolean} isShown
 * @param {() => void} show
 */
export function findingCard(finding, isShown, show) {
  const button = make(
    "button",
    {
      type: "button",
      class: "card",
      title: finding.verdict,
      "aria-pressed": String(isShown),
      click: show,
    },
    make("b", {}, t(`trouble.${finding.class}`)),
    ` ${isShown ? (finding.drawing?.[0]?.named ?? "") : finding.verdict}`,
  );
  return make("li", {}, button);
}

/**
 * Returns what the colours of ranks mean, with how many there are of each.
 * @param {Record<string, number>} counts
 * @param {string[]} ramp  their colours, the culprits' last
 */
export function stateKey(counts, ramp) {
  return STATES.flatMap((state, at) => {
    if (!counts[state]) return [];
    const swatch = make("i", { class: "swatch" });
    swatch.style.background = ramp.at(-1 - at) ?? "";
    const told = t(`wait_key.${state}`, { count: number(counts[state]) });
    return [make("span", { class: "state" }, swatch, ...shapeOf(at), told)];
  });
}

/**
 * Returns the mark of a state as the map draws it.
 * @param {number} at  its place, the cause first
 */
function shapeOf(at) {
  const shape = MARK_OF_STATE.at(-1 - at);
  if (!shape) return [];
  const image = markImage(shape.mark, shape.isFull ? "currentColor" : "none");
  image.firstElementChild?.setAttribute("stroke", "currentColor");
  image.firstElementChild?.setAttribute("stroke-width", "0.25");
  return [image];
}
