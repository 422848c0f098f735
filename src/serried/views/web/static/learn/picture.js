// The small picture on a lesson's card: its ranks, node by node, each in the colours of its groups,
// or the schedule that it is about.
//
//   ▐▌▐▌▐▌▐▌  ▐▌▐▌▐▌▐▌
//   ▐▌▐▌▐▌▐▌  ▐▌▐▌▐▌▐▌

/**
 * @typedef {object} RanksPicture
 * @property {string[][]} ranks  the colours of each rank
 * @property {number[]} nodes    the node of each
 * @property {number | null} chosen
 */
/** @typedef {{bars: [number, number, number, string][]}} BarsPicture rank, start, end, colour */
/** @typedef {RanksPicture | BarsPicture} Picture */

const SVG = "http://www.w3.org/2000/svg";
const [CELL, GAP, BETWEEN, ACROSS] = [24, 2, 8, 4];
const [WIDE, HIGH] = [212, 64];

/** Draws the picture of a lesson. @param {Picture} picture */
export function pictureOf(picture) {
  return "bars" in picture ? barsOf(picture) : ranksOf(picture);
}

/** @param {RanksPicture} picture */
function ranksOf({ chosen, nodes, ranks }) {
  const pitch = CELL + GAP;
  const places = ranks.map((_, rank) => {
    const local = rank - nodes.indexOf(nodes[rank]);
    const x = nodes[rank] * (ACROSS * pitch - GAP + BETWEEN) + (local % ACROSS) * pitch;
    return { x: x + 1, y: Math.floor(local / ACROSS) * pitch + 1 };
  });
  const cells = ranks.flatMap((colours, rank) => {
    const { x, y } = places[rank];
    const width = CELL / colours.length;
    return colours.map((fill, place) =>
      box({ x: x + place * width, y, width, height: CELL, fill }),
    );
  });
  if (chosen !== null)
    cells.push(
      box({ ...places[chosen], width: CELL, height: CELL, fill: "none", class: "chosen" }),
    );
  const right = Math.max(...places.map(({ x }) => x)) + CELL + 1;
  const bottom = Math.max(...places.map(({ y }) => y)) + CELL + 1;
  return image(right, bottom, cells);
}

/** @param {BarsPicture} picture */
function barsOf({ bars }) {
  const end = Math.max(...bars.map((bar) => bar[2]));
  const rows = 1 + Math.max(...bars.map(([rank]) => rank));
  const boxes = bars.map(([rank, from, to, fill]) =>
    box({
      x: (from / end) * WIDE,
      y: (rank / rows) * HIGH,
      width: ((to - from) / end) * WIDE - 0.5,
      height: HIGH / rows - GAP,
      fill,
    }),
  );
  return image(WIDE, HIGH, boxes);
}

/** @param {number} width @param {number} height @param {SVGElement[]} children */
function image(width, height, children) {
  const drawing = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  drawing.append(...children);
  return drawing;
}

/** @param {Record<string, string | number>} attributes */
function box(attributes) {
  return element("rect", attributes);
}

/** @param {string} name @param {Record<string, string | number>} attributes */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
