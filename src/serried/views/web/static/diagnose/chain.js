// The chain of waiting as a drawing: boxes of ranks in columns, the culprits at the left, and an
// arrow from each box to those that it waits for. Sizes are in em, so that it grows with the text.

import { make } from "../base/dom.js";
import { number, t } from "../base/i18n.js";

/** @typedef {import("./found.js").Box} Box */
/** @typedef {(rank: number) => void} Choose */

const NARROWEST = 13.5;
const WIDEST = 28;
const HEIGHT = 4.4;
const GAP = { x: 2.6, y: 0.8 };
const DIP = 2;
const RANKS_SHOWN = 4;
const SVG = "http://www.w3.org/2000/svg";

/**
 * Returns the drawing; null where nobody waits.
 * @param {Box[]} boxes
 * @param {string[]} ramp  the colours of ranks on the map, the culprits' last
 * @param {Choose} choose
 * @param {number} room  how wide the drawing may be
 */
export function chainDrawing(boxes, ramp, choose, room) {
  if (!boxes.length) return null;
  const columns = 1 + Math.max(...boxes.map(({ level }) => level));
  const share = (room - (columns - 1) * GAP.x) / columns;
  const wide = Math.min(WIDEST, Math.max(NARROWEST, share));
  const places = placesOf(boxes, wide);
  const width = Math.max(...places.map(({ x }) => x + wide));
  const height = Math.max(...places.map(({ y }) => y + HEIGHT)) + DIP;
  const list = make("ol", {}, ...boxes.map((box, at) => boxItem(box, places[at], choose)));
  list.style.setProperty("--wide", `${wide}em`);
  for (const [at, { level }] of boxes.entries()) {
    const item = /** @type {HTMLElement} */ (list.children[at]);
    item.style.setProperty("--state", ramp.at(-1 - Math.min(level, 2)) ?? "");
  }
  const drawing = make(
    "div",
    { class: "chain" },
    arrows(boxes, places, { width, height, wide }),
    list,
  );
  drawing.style.width = `${width}em`;
  drawing.style.height = `${height}em`;
  return drawing;
}

/**
 * Returns where boxes stand: a column for each level.
 * @param {Box[]} boxes
 * @param {number} wide  how wide each is
 */
export function placesOf(boxes, wide) {
  /** @type {Map<number, number>} */
  const filled = new Map();
  return boxes.map(({ level }) => {
    const row = filled.get(level) ?? 0;
    filled.set(level, row + 1);
    return { x: level * (wide + GAP.x), y: row * (HEIGHT + GAP.y) };
  });
}

/** @param {Box} box @param {{x: number, y: number}} place @param {Choose} choose */
function boxItem(box, { x, y }, choose) {
  const { named, what } = box;
  const told = what.join(" … ");
  const item = make(
    "li",
    { title: [named, told].filter(Boolean).join("\n") },
    make("span", { class: "ranks" }, ...rankButtons(box, choose)),
    make("span", { class: "what" }, told),
  );
  Object.assign(item.style, {
    left: `${x}em`,
    top: `${y}em`,
    height: `${HEIGHT}em`,
  });
  return item;
}

/** @param {Box} box @param {Choose} choose */
function rankButtons({ named, ranks, num_ranks: count }, choose) {
  const button = (/** @type {string} */ text, /** @type {number} */ rank) =>
    make("button", { type: "button", class: "rank", click: () => choose(rank) }, text);
  if (!ranks.length) return [named];
  if (ranks.length === 1) return [button(named, ranks[0])];
  const shown = ranks.slice(0, RANKS_SHOWN).map((rank) => button(String(rank), rank));
  const more = t("diagnose.ranks", { count: number(count) });
  return count > RANKS_SHOWN ? [...shown, `… ${more}`] : [t("diagnose.of"), ...shown];
}

/**
 * @param {Box[]} boxes
 * @param {{x: number, y: number}[]} places
 * @param {{width: number, height: number, wide: number}} size  of the drawing, and of a box
 */
function arrows(boxes, places, { width, height, wide }) {
  const drawing = element("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width: `${width}em`,
    height: `${height}em`,
    "aria-hidden": "true",
  });
  const tip = element("marker", {
    id: "chain-tip",
    viewBox: "0 0 8 8",
    refX: "7",
    refY: "4",
    markerWidth: "8",
    markerHeight: "8",
    orient: "auto",
  });
  tip.append(element("path", { d: "M0 0 8 4 0 8Z" }));
  drawing.append(tip);
  boxes.forEach(({ waits_for: targets }, at) => {
    for (const target of targets)
      drawing.append(
        element("path", {
          d: way(places[at], places[target], wide),
          "marker-end": "url(#chain-tip)",
        }),
      );
  });
  return drawing;
}

/**
 * Returns the line from a box to one that it waits for.
 * @param {{x: number, y: number}} from
 * @param {{x: number, y: number}} to
 * @param {number} wide  how wide boxes are
 */
export function way(from, to, wide) {
  const [y0, y1] = [from.y + HEIGHT / 2, to.y + HEIGHT / 2];
  // Widths are fractions, so that a column apart is not told by an equal sign.
  if (from.x - to.x > 1.5 * (wide + GAP.x)) {
    // Past the columns between: below them, from foot to foot.
    const [x0, x1] = [from.x + 0.3 * wide, to.x + 0.7 * wide];
    const [foot, end] = [from.y + HEIGHT, to.y + HEIGHT];
    return `M${x0} ${foot} C${x0} ${foot + DIP} ${x1} ${end + DIP} ${x1} ${end}`;
  }
  if (from.x > to.x) {
    const [x0, x1] = [from.x, to.x + wide];
    const bend = GAP.x / 2;
    return `M${x0} ${y0} C${x0 - bend} ${y0} ${x1 + bend} ${y1} ${x1} ${y1}`;
  }
  // Within a column, or back from a culprit that waits in a circle: around at the right.
  const [x0, x1] = [from.x + wide, to.x > from.x ? to.x : to.x + wide];
  const bend = to.x > from.x ? GAP.x / 2 : GAP.x * 0.8;
  const end = to.x > from.x ? x1 - bend : x1 + bend;
  const [low, high] = to.x > from.x ? [y0 + 1, y1 + 1] : [y0, y1];
  return `M${x0} ${low} C${x0 + bend} ${low} ${end} ${high} ${x1} ${high}`;
}

/** @param {string} name @param {Record<string, string>} attributes */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
