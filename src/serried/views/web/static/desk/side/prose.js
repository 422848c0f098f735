// The prose beside the picture: legend, basics, explanation and further reading.

import { byId, make } from "../../base/dom.js";
import { explained } from "../../base/explained.js";
import { counted, listed, number, t } from "../../base/i18n.js";
import { markImage } from "../../base/canvas/marks.js";
import { inkOf, theme } from "../../base/theme.js";
import { spread } from "./selected.js";

/** @typedef {import("../../base/scene.js").Scene} Scene */
/** @typedef {import("../../base/scene.js").PageWords} PageWords */

/** Nodes beyond which the GPUs of each are not told one by one. */
const MANY_NODES = 6;

/**
 * Shows what each mark in view stands for: its kind, how many groups, how large, how spread.
 * @param {Scene} scene
 */
export function showLegend(scene) {
  const colours = theme();
  const items = scene.kinds.map((kind, i) => {
    const name = kind.dim && kind.kind !== kind.dim ? `${kind.label} (${kind.kind})` : kind.label;
    return make(
      "li",
      {},
      markImage(kind.mark, inkOf(kind, colours)),
      make("b", {}, name),
      make("span", {}, summary(scene, i)),
    );
  });
  byId("legend").replaceChildren(...items);
}

/**
 * Writes how many groups a kind has, how large they are and how far they spread.
 * @param {Scene} scene
 * @param {number} kind
 */
export function summary(scene, kind) {
  const { nodes, bounds } = scene.kinds[kind];
  if (!nodes.length) return t("legend.none");
  const sizes = bounds.subarray(1).map((end, group) => end - bounds[group]);
  const [small, large] = [
    sizes.reduce((a, b) => Math.min(a, b)),
    sizes.reduce((a, b) => Math.max(a, b)),
  ];
  const size = small === large ? number(large) : `${number(small)}–${number(large)}`;
  const widest = nodes.reduce((a, b) => Math.max(a, b));
  return t("legend.groups", {
    count: number(sizes.length),
    size: t("unit.ranks", { count: size }),
    spread: spread(widest),
  });
}

/**
 * Shows what a colour means for each dimension, under the layout's settings.
 * @param {PageWords} page
 * @param {Scene | null} scene
 */
export function showBasics(page, scene) {
  const colours = theme();
  const entries = (scene ?? page).basics.map(({ dim, text }) => {
    const look = page.looks[dim];
    const ink = look && (colours.dark ? look.ink_on_dark : look.ink);
    const mark = look ? [markImage(look.mark, ink, 12), dim.toUpperCase()] : [t(`basics.${dim}`)];
    return make("div", {}, make("dt", {}, ...mark), make("dd", {}, text));
  });
  /** @type {HTMLElement} */ (byId("basics").querySelector("dl")).replaceChildren(...entries);
}

/**
 * Shows the explanation of the type in view, and where to read on.
 * @param {import("../../base/scene.js").Explanation | null} explanation
 */
export function showExplanation(explanation) {
  const place = /** @type {HTMLElement} */ (byId("explanation").querySelector("div"));
  // When the frame is laid out anyway: scrolling at once would lay it out once more.
  requestAnimationFrame(() => place.parentElement?.scrollTo(0, 0));
  if (!explanation) {
    place.replaceChildren(make("p", { class: "note" }, t("explanation.none")));
    return;
  }
  place.replaceChildren(...explained(explanation));
}

/** Writes the job in one line. @param {Scene} scene */
export function headline(scene) {
  const { job } = scene;
  // In the order of the command line, the axis whose ranks lie farthest apart first.
  const split = Object.entries(job.axes)
    .reverse()
    .filter(([, size]) => size > 1);
  const sizes = split.map(([name, size]) => `${name.toUpperCase()} ${number(size)}`).join(" × ");
  return t(new Set(job.node_gpus).size > 1 ? "headline.uneven" : "headline", {
    framework: `${job.title} ${job.version}`,
    ranks: counted("unit.ranks", job.world_size),
    sizes: sizes ? `= ${sizes}` : "",
    nodes: counted("unit.nodes", job.num_nodes),
    gpus: gpusOfNodes(job),
  });
}

/**
 * Writes the GPUs of the nodes: one number, that of each node, or the least and the most.
 * @param {import("../../base/scene.js").Job} job
 */
function gpusOfNodes({ node_gpus: gpus, gpus_per_node: each }) {
  if (new Set(gpus).size < 2) return number(gpus[0] ?? each);
  if (gpus.length <= MANY_NODES) return listed(gpus.map(number));
  return t("headline.between", {
    low: number(gpus.reduce((a, b) => Math.min(a, b))),
    high: number(gpus.reduce((a, b) => Math.max(a, b))),
  });
}
