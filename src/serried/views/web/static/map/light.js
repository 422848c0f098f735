// Painting what is lit over the map: a veil with holes, marks in their ink, outlines of ranks.

import { traceMark } from "../base/canvas/marks.js";
import { inkOf } from "../base/theme.js";
import { cellOf, ranksInView, showsMarks } from "./paint.js";
import { viewOf } from "./camera.js";
import { MARKS_FROM } from "./slots.js";

/** Pixels around a name that belong to the outline of what it names. */
const EDGE = 2;
const LEAST_NAME = 8;
/** Pixels of a cell below which what is lit fills it, and from which it outlines it. */
const FILLED_BELOW = 5;

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../base/lit.js").Lit} Lit */
/**
 * @typedef {(rank: number) => [number, number, number, number]} CellOf
 *   left, top, width and height of a rank's cell
 */

/**
 * Draws what is lit over the map: a veil with holes, and each lit mark in its kind's ink; with a
 * figure in view its colours stay, and the ranks are outlined.
 * @param {Picture} picture the surface being the one above the map's
 * @param {Lit | null} lit
 * @param {number} pinned
 * @param {number} focused
 */
export function paintLit(picture, lit, pinned, focused) {
  const context = picture.surface.begin();
  const { nest, camera, theme, heat } = picture;
  const { scale } = camera;
  const { width, height, inset } = cellOf(picture);
  /** @type {CellOf} */
  const cell = (rank) => [
    (nest.cellX(rank) - camera.x) * scale + inset,
    (nest.cellY(rank) - camera.y) * scale + inset,
    width - 2 * inset,
    height - 2 * inset,
  ];
  if (lit) {
    // Where all ranks belong to it there is none to dim.
    if (!heat && lit.ranks.length < picture.scene.worldSize) paintVeil(picture, context, lit, cell);
    lit.byKind.forEach((ranks, kind) => paintPeers(picture, context, kind, ranks, cell));
  }
  outline(context, lit?.rank ?? -1, theme.text, 2.5, cell);
  outline(context, pinned, theme.accent, 3, cell);
  if (focused >= 0) {
    context.setLineDash([4, 3]);
    outline(context, focused, theme.text, 2, cell);
    context.setLineDash([]);
  }
}

/**
 * Dims the map but for what is lit.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Lit} lit
 * @param {CellOf} cell
 */
function paintVeil(picture, context, lit, cell) {
  const { scene, surface, theme } = picture;
  context.fillStyle = theme.veil;
  context.fillRect(0, 0, surface.width, surface.height);
  const ranks = lit.ranks.filter((rank) => rank < scene.worldSize);
  for (const rank of seenOf(picture, ranks)) context.clearRect(...cell(rank));
  clearNames(picture, context, ranks);
}

/**
 * Leaves the names of nodes and bands that hold lit ranks as they are.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Int32Array} ranks
 */
function clearNames({ nest, camera }, context, ranks) {
  const { scale } = camera;
  nest.places.forEach(({ left, top }, level) => {
    // Of nothing so small a name is written.
    if (Math.max(left, top) * scale < LEAST_NAME) return;
    const items = new Set();
    for (const rank of ranks) items.add(nest.itemOf(level, rank));
    for (const item of items) {
      const { x, y, width, height } = nest.box(level, item);
      const [wide, high] = left ? [left, height] : [width, top];
      context.clearRect(
        (x - camera.x) * scale + EDGE,
        (y - camera.y) * scale + EDGE,
        wide * scale - 2 * EDGE,
        high * scale - 2 * EDGE,
      );
    }
  });
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} kind
 * @param {Int32Array} ranks
 * @param {CellOf} cell
 */
function paintPeers(picture, context, kind, ranks, cell) {
  const { scene, nest, camera, theme, heat } = picture;
  const { scale } = camera;
  const { side, slots } = cellOf(picture);
  // Filled, a group of all ranks would tell nothing, and hide what the cells show.
  if (side < FILLED_BELOW && ranks.length >= scene.worldSize) return;
  const hasMarks = showsMarks(picture);
  const isRoomy = side >= MARKS_FROM;
  const ink = inkOf(scene.kinds[kind], theme);
  context.strokeStyle = ink;
  context.fillStyle = ink;
  context.lineWidth = isRoomy ? 2.5 : 1.5;
  context.lineJoin = "round";
  const { x, y } = slots.middle(kind);
  context.beginPath();
  for (const rank of seenOf(picture, ranks)) {
    if (!hasMarks) {
      const [left, top, width, height] = cell(rank);
      const within = heat && isRoomy ? 3 * kind : 0;
      if (within)
        context.rect(left + within, top + within, width - 2 * within, height - 2 * within);
      else if (side < FILLED_BELOW)
        context.rect(left, top, Math.max(width, 2), Math.max(height, 2));
      else context.rect(left + 0.5, top + 0.5, width - 1.5, height - 1.5);
    } else {
      const left = (nest.cellX(rank) - camera.x) * scale;
      const top = (nest.cellY(rank) - camera.y) * scale;
      traceMark(context, scene.kinds[kind].mark, left + x, top + y, slots.radius);
    }
  }
  if (side < FILLED_BELOW) context.fill();
  else context.stroke();
}

/**
 * Returns those ranks of a layout whose cells are in view.
 * @param {Picture} picture
 * @param {Int32Array} ranks
 */
function seenOf(picture, ranks) {
  const { scene, nest, camera, surface } = picture;
  if (ranks.length >= scene.worldSize) return ranksInView(picture);
  const { x, y, right, bottom } = viewOf(camera, surface);
  return ranks.filter((rank) => {
    if (rank >= scene.worldSize) return false;
    const [left, top] = [nest.cellX(rank), nest.cellY(rank)];
    return left + nest.aspect > x && left < right && top + 1 > y && top < bottom;
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} rank
 * @param {string} colour
 * @param {number} width
 * @param {CellOf} cell
 */
function outline(context, rank, colour, width, cell) {
  if (rank < 0) return;
  const [left, top, wide, high] = cell(rank);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.roundRect(left, top, Math.max(wide, 4), Math.max(high, 4), Math.min(4, wide / 5));
  context.stroke();
}
