// The names of what holds the map's cells: readable, or not there; those of bands and of a cube's
// rows and columns stay at the edge of the frame while what they name is in view.

import { viewOf } from "./camera.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./nest.js").Level} Level */

const SMALLEST = 9.5;
const LARGEST = 13;
const APART = 12;
export const MARGIN = { left: 60, top: 20 };
const AWAY = 8;
/** Of so many rows one is named. */
const STEPS = [1, 2, 4, 8, 16, 32, 64, 128];

/** Draws all names. @param {Picture} picture @param {CanvasRenderingContext2D} context */
export function paintNames(picture, context) {
  const { nest } = picture;
  nest.levels.forEach((level, i) => {
    if (level.left) paintBands(picture, context, i);
    else if (level.top) paintHeads(picture, context, i);
  });
  if (nest.levels.some(({ name }) => name === "row" || name === "column"))
    paintMargins(picture, context);
}

/**
 * Names an item by its number on its level, or by its places along the axes of a cube.
 * @param {Picture} picture
 * @param {number} level
 * @param {number} item
 */
export function nameOf({ nest, names }, level, item) {
  const { axes, name } = nest.levels[level];
  if (!axes) return names.item(name, item);
  return axisName(axes, item % nest.levels[level].count);
}

/** @param {{axis: string, size: number}[]} axes @param {number} place */
function axisName(axes, place) {
  /** @type {string[]} */
  const parts = [];
  for (const { axis, size } of axes.toReversed()) {
    parts.unshift(`${axis} ${place % size}`);
    place = Math.floor(place / size);
  }
  return parts.join(" ");
}

/**
 * Writes names above what they name.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} level
 */
function paintHeads(picture, context, level) {
  const { nest, camera, surface, theme } = picture;
  const { scale } = camera;
  const { top } = nest.places[level];
  const size = Math.min(LARGEST, top * scale * 0.8);
  if (size < SMALLEST) return;
  context.font = `600 ${size}px ${theme.font}`;
  context.fillStyle = theme.faint;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const item of nest.itemsIn(level, viewOf(camera, surface))) {
    const { x, y, width } = nest.box(level, item);
    const left = (x - camera.x) * scale + 5;
    const upper = (y - camera.y) * scale;
    const room = width * scale - 8;
    const name = [nameOf(picture, level, item), String(item)].find(
      (text) => context.measureText(text).width <= room,
    );
    if (name) context.fillText(name, left, upper + (top * scale) / 2 + 1);
  }
}

/**
 * Writes the names of bands at their left, within the part of each that is in view.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} level
 */
function paintBands(picture, context, level) {
  context.font = bandFont(picture);
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { text, x, y, isOver } of bandNames(picture, level))
    tag(context, picture.theme, text, x, y, isOver);
}

/** @param {Picture} picture */
function bandFont({ theme }) {
  return `600 12px ${theme.font}`;
}

/** Returns the boxes that the names of bands take, in pixels. */
/** @param {Picture} picture @param {CanvasRenderingContext2D} context  it measures text */
export function bandBoxes(picture, context) {
  context.font = bandFont(picture);
  return picture.nest.levels.flatMap(({ left }, level) =>
    (left ? bandNames(picture, level) : []).map(({ text, x, y }) => ({
      x: x - 3,
      y: y - 8,
      width: context.measureText(text).width + 6,
      height: 16,
    })),
  );
}

/** Returns where the bands of a level are named. @param {Picture} picture @param {number} level */
function bandNames(picture, level) {
  const { nest, camera, surface } = picture;
  const { scale } = camera;
  /** @type {{text: string, x: number, y: number, isOver: boolean}[]} */
  const found = [];
  const count = nest.numItems(level);
  let lowest = -Infinity;
  let column = -Infinity;
  for (let item = 0; item < count; item++) {
    const { x, y, width, height } = nest.box(level, item);
    const left = Math.max((x - camera.x) * scale, 0);
    const right = (x + width - camera.x) * scale;
    const upper = Math.max((y - camera.y) * scale, 0);
    const lower = Math.min((y + height - camera.y) * scale, surface.height);
    if (left > surface.width || right < 0 || lower <= upper) continue;
    const middle = (upper + lower) / 2;
    const isBelow = Math.abs(column - left) < 1;
    if (isBelow && middle - lowest < APART) continue;
    [lowest, column] = [middle, left];
    const isOver = (x - camera.x) * scale < -1;
    found.push({ text: nameOf(picture, level, item), x: left + AWAY, y: middle, isOver });
  }
  return found;
}

/**
 * Writes places along the axes at the left and at the top of a cube: each row that there is room
 * for, and columns only where all of a block have room, or else those of the slowest axis.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
function paintMargins(picture, context) {
  const { nest } = picture;
  context.font = `11px ${picture.theme.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const rows = axesOf(nest.levels, "row");
  const columns = axesOf(nest.levels, "column");
  if (rows.length) paintRowNames(picture, context, namesAlong(rows));
  if (!columns.length) return;
  const names = [columns, columns.slice(0, 1)].map(namesAlong);
  const fitting = names.find((each) => haveRoom(picture, context, each));
  if (fitting) paintColumnNames(picture, context, fitting);
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {string[]} rows
 */
function paintRowNames({ nest, camera, surface, theme }, context, rows) {
  const { scale } = camera;
  const left = Math.max(4, -camera.x * scale - MARGIN.left + AWAY);
  const every = STEPS.find((step) => step * scale >= APART) ?? rows.length;
  const isWhole = every >= rows.length;
  nest.y.forEach((y, i) => {
    const middle = (y + (isWhole ? rows.length : 1) / 2 - camera.y) * scale;
    if ((i % rows.length) % every || middle < 0 || middle > surface.height) return;
    tag(context, theme, isWhole ? extent(rows) : rows[i % rows.length], left, middle, true);
  });
}

/**
 * Names all rows of a block at once: "pp 0–15"; those along several axes by the first of them.
 * @param {string[]} rows
 */
function extent(rows) {
  const isOneAxis = rows[0].split(" ").length === 2;
  return isOneAxis && rows.length > 1 ? `${rows[0]}–${rows.length - 1}` : rows[0];
}

/**
 * Tells whether all columns, each of as many cells, have room for their names.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {string[]} columns
 */
function haveRoom({ nest, camera }, context, columns) {
  const cells = namesAlong(axesOf(nest.levels, "column")).length / columns.length;
  const widest = Math.max(...columns.map((name) => context.measureText(name).width));
  return cells * nest.aspect * camera.scale >= widest + 6;
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {string[]} columns
 */
function paintColumnNames({ nest, camera, surface, theme }, context, columns) {
  const { scale } = camera;
  const cells = namesAlong(axesOf(nest.levels, "column")).length / columns.length;
  const top = Math.max(9, -camera.y * scale - MARGIN.top / 2);
  for (let i = 0; i < nest.x.length; i += cells) {
    const text = columns[(i / cells) % columns.length];
    const middle = (nest.x[i] + nest.x[i + cells - 1] + nest.aspect) / 2;
    const start = (middle - camera.x) * scale - context.measureText(text).width / 2;
    if (start >= 0 && start <= surface.width) tag(context, theme, text, start, top, true);
  }
}

/** @param {Level[]} levels @param {string} name */
function axesOf(levels, name) {
  return levels.flatMap((level) => (level.name === name ? (level.axes ?? []) : []));
}

/** Returns the names of all places along axes. @param {{axis: string, size: number}[]} axes */
function namesAlong(axes) {
  const count = axes.reduce((all, { size }) => all * size, 1);
  return Array.from({ length: count }, (_, place) => axisName(axes, place));
}

/**
 * Writes a name, on a ground of its own where it lies over cells.
 * @param {CanvasRenderingContext2D} context
 * @param {import("../base/theme.js").Theme} theme
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {boolean} isOver
 */
function tag(context, theme, text, x, y, isOver) {
  if (isOver) {
    context.fillStyle = theme.box;
    context.globalAlpha = 0.86;
    context.fillRect(x - 3, y - 7, context.measureText(text).width + 6, 14);
    context.globalAlpha = 1;
  }
  context.fillStyle = theme.text;
  context.fillText(text, x, y + 0.5);
}
