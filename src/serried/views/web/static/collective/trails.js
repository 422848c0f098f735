// The same moment on the cluster map: links between the ranks' cells, and blocks on their way.

import { theme } from "../base/theme.js";
import { between } from "./figure.js";
import { Hues } from "./hues.js";

/** @typedef {import("./execution.js").Execution} Execution */
/** @typedef {{x: number, y: number, size: number}} Spot  the middle of a cell, and its width */
/** @typedef {(rank: number) => Spot | null} SpotOf */

/** How far below a cell's middle links end, in shares of it: its number and marks stay readable. */
const BELOW_MARKS = 0.38;

const LEAST_CELL = 12;
/** Links above which a map would be all lines; the picture of the player shows them apart. */
const MOST_LINKS = 64;
const BULGE = 0.14;

/**
 * Tells whether ranks stand far enough apart on the map for links between them.
 * @param {Execution} execution
 * @param {SpotOf} spotOf
 */
export function hasRoom({ header }, spotOf) {
  const spot = header.is_grouped ? null : spotOf(header.places[0].rank);
  return Boolean(spot && spot.size >= LEAST_CELL);
}

/**
 * Draws the links of a step, and what travels.
 * @param {CanvasRenderingContext2D} context
 * @param {Execution} execution
 * @param {number} steps
 * @param {SpotOf} spotOf
 */
export function paintTrails(context, execution, steps, spotOf) {
  const done = Math.floor(steps + 1e-9);
  if (done >= execution.numSteps) return;
  const { owner, num_ranks: ranks, places } = execution.header;
  const colours = theme();
  const hues = new Hues(owner, ranks, colours.dark);
  const ends = places.map(({ rank, node }) =>
    rank < 0
      ? middleOf(
          places.filter((each) => each.node === node && each.ranks),
          spotOf,
        )
      : belowMarks(spotOf(rank)),
  );
  const links = execution.links(done);
  if (links.length > MOST_LINKS) return;
  for (const part of ["link", "packet"]) {
    for (const link of links) {
      const [from, to] = [ends[link.source], ends[link.target]];
      if (!from || !to) continue;
      const bend = {
        x: (from.x + to.x) / 2 - BULGE * (to.y - from.y),
        y: (from.y + to.y) / 2 + BULGE * (to.x - from.x),
      };
      if (part === "packet") {
        const size = Math.min(16, Math.max(6, from.size / 5));
        const at = between(from, bend, to, steps - done);
        context.fillStyle = link.blocks.length ? hues.fill(link.blocks[0]) : colours.cell;
        context.strokeStyle = colours.text;
        context.lineWidth = 1.25;
        context.beginPath();
        context.roundRect(at.x - size / 2, at.y - size / 2, size, size, 3);
        context.fill();
        context.stroke();
        continue;
      }
      context.strokeStyle = colours.accent;
      context.lineWidth = link.across ? 3 : 1.5;
      context.beginPath();
      context.moveTo(from.x, from.y);
      context.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
      context.stroke();
    }
  }
}

/** @param {Spot | null} spot */
function belowMarks(spot) {
  return spot && { ...spot, y: spot.y + BELOW_MARKS * spot.size };
}

/**
 * Returns the middle of several ranks' cells, where the switch of their node is drawn.
 * @param {import("./execution.js").Place[]} places
 * @param {SpotOf} spotOf
 */
function middleOf(places, spotOf) {
  const spots = places.map(({ rank }) => spotOf(rank)).filter((spot) => spot !== null);
  if (!spots.length) return null;
  const mean = (/** @type {"x" | "y"} */ axis) =>
    spots.reduce((sum, spot) => sum + spot[axis], 0) / spots.length;
  return { x: mean("x"), y: mean("y"), size: spots[0].size };
}
