// Painting the map: items within items, and in each rank's cell what there is room for.
//
//   a mark has no 20 pixels       the whole cell in one colour: of a figure, a stage or a group
//   else                          a mark for each kind in view; letters where they fit
//   a cell below 10 pixels,       boxes of pixels, put down at once
//   or thousands of cells
//   a large job that moves        an enlarged picture of all, but for the last few hundred shapes
//
// With a figure in view the cell has its colour, and its value is written where it fits.

import { LETTER_ROOM, USUAL_ROOM, traceMark } from "../base/canvas/marks.js";
import { css, inkOf } from "../base/theme.js";
import { viewOf } from "./camera.js";
import { MANY } from "./fill.js";
import { isPale } from "./heat.js";
import { bandBoxes, paintNames } from "./names.js";
import { slotsOf } from "./slots.js";
import { paintStates } from "./states.js";

/** @typedef {import("./picture.js").Picture} Picture */

const PIXELS_BELOW = 10;
const PIXELS_ABOVE = 1500;
const CORNER = 6;
const VALUES_FROM = 46;
const NUMBERS_FROM = 34;
const BOXES_FROM = 7;
const LIGHT_LETTERS = "#f4f7fb";
/** Numbers and letters are left out of a frame that the next follows where there are so many. */
const MOST_MOVING = 500;

/** Draws the map. @param {Picture} picture */
export function paintMap(picture) {
  const context = picture.surface.begin();
  const { pixels } = picture;
  paintItems(picture, context);
  if (pixels && arePixels(picture)) pixels.paint(picture, context);
  else if (showsMarks(picture)) paintMarked(picture, context);
  else paintFilled(picture, context);
  if (picture.heat?.unit === "state")
    paintStates(picture, context, () => ranksInView(picture), cellOf(picture));
  paintNames(picture, context);
}

/** Returns the cell's size, and what stands where in it, in pixels. @param {Picture} picture */
export function cellOf({ scene, nest, camera }) {
  const [width, height] = [nest.aspect * camera.scale, camera.scale];
  const side = Math.min(width, height);
  const inset = side < 5 ? 0 : side < 14 ? 0.5 : Math.min(2.5, 0.03 * side);
  const top = height >= NUMBERS_FROM ? numberSize(side) + inset + 5 : inset;
  return { width, height, side, inset, slots: slotsOf(scene.kinds.length, width, height, top) };
}

/** Tells whether cells show a mark for each kind. @param {Picture} picture */
export function showsMarks(picture) {
  const { heat, isFilled, scene } = picture;
  return !heat && !isFilled && scene.kinds.length > 0 && cellOf(picture).slots.areReadable;
}

/** Returns what links are not drawn over, in pixels. */
/** @param {Picture} picture @param {CanvasRenderingContext2D} context  it measures text */
export function sparedIn(picture, context) {
  return { marks: marksOf(picture), names: bandBoxes(picture, context) };
}

/** Returns where marks stand in view. @param {Picture} picture */
function marksOf(picture) {
  const { camera, nest, scene } = picture;
  if (!showsMarks(picture)) return [];
  const { slots } = cellOf(picture);
  const middles = scene.kinds.map((_, kind) => slots.middle(kind));
  return ranksInView(picture).flatMap((rank) => {
    const left = (nest.cellX(rank) - camera.x) * camera.scale;
    const top = (nest.cellY(rank) - camera.y) * camera.scale;
    return middles.map(({ x, y }) => ({ x: left + x, y: top + y, radius: slots.radius }));
  });
}

/**
 * Tells whether cells are put down at once; those of a large job also while they move, unless few
 * are in view.
 * @param {Picture} picture
 */
function arePixels(picture) {
  const { surface, scene, isMoving } = picture;
  const { side, width, height } = cellOf(picture);
  const most = Math.min(scene.worldSize, (surface.width * surface.height) / (width * height));
  const areMarks = showsMarks(picture);
  const shapes = most * (areMarks ? scene.kinds.length : 1);
  if (isMoving && scene.worldSize >= MANY && shapes > MOST_MOVING) return true;
  return !areMarks && (side < PIXELS_BELOW || most > PIXELS_ABOVE);
}

/** Returns the ranks whose cells are in view. @param {Picture} picture */
export function ranksInView(picture) {
  const { camera, nest, surface } = picture;
  const items = nest.itemsIn(nest.cells, viewOf(camera, surface));
  return items.map((item) => nest.rankIn[item]).filter((rank) => rank >= 0);
}

/**
 * Draws the outlines of items that hold cells.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
function paintItems(picture, context) {
  const { nest, camera, surface, theme, isMoving } = picture;
  const { scale } = camera;
  const view = viewOf(camera, surface);
  context.lineWidth = 1;
  nest.levels.forEach(({ name, isSmall }, level) => {
    if (level === nest.cells || name === "row" || name === "column") return;
    if (isSmall && scale * Math.min(1, nest.aspect) < BOXES_FROM) return;
    const isOuter = name === "stage" || name === "band";
    const items = nest.itemsIn(level, view);
    const boxes = items.map((item) => boxOf(picture, level, item, isSmall ? 0 : 2));
    const fill = isOuter ? theme.ground : theme.box;
    if (isMoving && boxes.length > MOST_MOVING) return paintPlain(context, boxes, theme.edge, fill);
    context.strokeStyle = theme.edge;
    context.fillStyle = fill;
    for (const { x, y, width, height } of boxes) {
      context.beginPath();
      const corner = isSmall ? Math.min(CORNER, 0.2 * scale) : 3;
      context.roundRect(x + 0.5, y + 0.5, width, height, corner);
      context.fill();
      context.stroke();
    }
  });
}

/**
 * Returns where an item's outline stands, in whole pixels.
 * @param {Picture} picture
 * @param {number} level
 * @param {number} item
 * @param {number} grow  pixels to each side
 */
function boxOf({ nest, camera }, level, item, grow) {
  const { x, y, width, height } = nest.box(level, item);
  const { scale } = camera;
  return {
    x: Math.round((x - camera.x) * scale) - grow,
    y: Math.round((y - camera.y) * scale) - grow,
    width: Math.round(width * scale) + 2 * grow,
    height: Math.round(height * scale) + 2 * grow,
  };
}

/**
 * Draws outlines with square corners: thousands of round ones take longer than a frame.
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number, width: number, height: number}[]} boxes
 * @param {string} edge
 * @param {string} fill
 */
function paintPlain(context, boxes, edge, fill) {
  context.fillStyle = edge;
  for (const { x, y, width, height } of boxes) context.fillRect(x, y, width + 1, height + 1);
  context.fillStyle = fill;
  for (const { x, y, width, height } of boxes)
    context.fillRect(x + 1, y + 1, width - 1, height - 1);
}

/**
 * Fills each rank's cell with its one colour.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
function paintFilled(picture, context) {
  const { nest, camera, theme, shade, heat, isMoving, scene } = picture;
  const { scale } = camera;
  const { width, height, side, inset } = cellOf(picture);
  const corner = Math.min(CORNER, side / 6);
  const isBusy = isMoving && scene.worldSize > MOST_MOVING;
  const numbers = isBusy ? 0 : fittingNumber(picture, context, width - 2 * inset - 6);
  for (const rank of ranksInView(picture)) {
    const left = (nest.cellX(rank) - camera.x) * scale;
    const top = (nest.cellY(rank) - camera.y) * scale;
    const rgb = shade.colours[rank];
    context.fillStyle = rgb < 0 ? theme.cell : css(rgb);
    context.beginPath();
    context.roundRect(left + inset, top + inset, width - 2 * inset, height - 2 * inset, corner);
    context.fill();
    if (!numbers) continue;
    const letters = rgb < 0 ? theme.text : isPale(rgb) ? theme.letters : LIGHT_LETTERS;
    paintNumber(picture, context, rank, { left, top, width, height, letters, size: numbers });
    const text = heat ? heat.text(heat.values[rank]) : groupText(shade, rank);
    if (!text || height < VALUES_FROM || rgb < 0) continue;
    context.font = `${numbers}px ${theme.font}`;
    context.fillStyle = letters;
    context.textAlign = "center";
    context.textBaseline = "middle";
    if (context.measureText(text).width <= width - 4 * inset)
      context.fillText(text, left + width / 2, top + 0.62 * height);
  }
}

/**
 * Names the group that a cell is filled by, "" where it is by none.
 * @param {import("./shade.js").Shade} shade
 * @param {number} rank
 */
function groupText({ name, groups }, rank) {
  return groups ? `${name} ${groups[rank]}` : "";
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintMarked(picture, context) {
  const { scene, nest, camera, theme, isMoving } = picture;
  const { scale } = camera;
  const { width, height, side, inset, slots } = cellOf(picture);
  const { radius } = slots;
  const middles = scene.kinds.map((_, kind) => slots.middle(kind));
  const ranks = ranksInView(picture);
  const isBusy = isMoving && ranks.length * scene.kinds.length > MOST_MOVING;
  const writers = scene.kinds.map((kind) =>
    isBusy ? () => {} : letterer(picture, context, kind, radius),
  );
  const inks = scene.kinds.map((kind) => inkOf(kind, theme));
  const numbers =
    height >= NUMBERS_FROM && !isBusy ? fittingNumber(picture, context, width - 2 * inset - 6) : 0;
  for (const rank of ranks) {
    const left = (nest.cellX(rank) - camera.x) * scale;
    const top = (nest.cellY(rank) - camera.y) * scale;
    context.fillStyle = theme.cell;
    context.beginPath();
    const corner = Math.min(CORNER, side / 6);
    context.roundRect(left + inset, top + inset, width - 2 * inset, height - 2 * inset, corner);
    context.fill();
    context.lineWidth = 1;
    scene.kinds.forEach(({ group, colour, mark }, kind) => {
      if (group[rank] < 0) return;
      const [x, y] = [left + middles[kind].x, top + middles[kind].y];
      context.fillStyle = css(colour[group[rank]]);
      context.strokeStyle = inks[kind];
      context.beginPath();
      traceMark(context, mark, x, y, radius);
      context.fill();
      if (!theme.dark) context.stroke();
      writers[kind](group[rank], x, y);
    });
    if (numbers)
      paintNumber(picture, context, rank, { left, top, width, height, letters: "", size: numbers });
  }
}

/** @param {number} side */
function numberSize(side) {
  return Math.min(14, Math.max(10, side * 0.16));
}

/**
 * Returns the size of letters at which every rank's number fits a width, 0 where none is readable.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 */
function fittingNumber(picture, context, width) {
  const { theme, scene } = picture;
  const { side, height } = cellOf(picture);
  const size = numberSize(side);
  if (height < size + 6) return 0;
  context.font = `600 ${size}px ${theme.font}`;
  const widest = context.measureText("0").width * String(scene.worldSize - 1).length;
  return widest <= width ? size : 0;
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} rank
 * @param {{left: number, top: number, width: number, height: number, letters: string,
 *   size: number}} cell  letters on a coloured cell, else ""
 */
function paintNumber({ scene, theme, names, heat }, context, rank, cell) {
  const { left, top, width, height, letters, size } = cell;
  const isAlone = height < NUMBERS_FROM;
  // With a figure in view, outlines of peers stand one within another at the cell's edge.
  const outlines = heat && !isAlone ? 3 * scene.kinds.length : 0;
  const inset = Math.max(5, size * 0.45) + outlines;
  context.font = `600 ${size}px ${theme.font}`;
  context.fillStyle = letters || theme.text;
  context.textBaseline = isAlone ? "middle" : "top";
  context.textAlign = isAlone ? "center" : "left";
  if (isAlone) {
    context.fillText(String(rank), left + width / 2, top + height / 2 + 0.5);
    return;
  }
  context.fillText(String(rank), left + inset, top + inset);
  if (scene.job.num_stages < 2) return;
  // Every cell names its stage or none does, so that short numbers are not told from long ones.
  const used = context.measureText("0".repeat(String(scene.worldSize - 1).length)).width;
  context.font = `${size - 1}px ${theme.font}`;
  const widest = context.measureText(names.stage(scene.job.num_stages - 1)).width;
  if (widest + used + 2 * inset + 10 > width) return;
  context.textAlign = "right";
  context.fillStyle = letters || theme.faint;
  context.fillText(names.stage(scene.stage[rank]), left + width - inset, top + inset + 0.5);
}

/**
 * Returns how a kind's marks are lettered at a radius: not at all where letters would be too small.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {import("../base/scene.js").Kind} kind
 * @param {number} radius
 * @returns {(group: number, x: number, y: number) => void}
 */
function letterer({ theme }, context, kind, radius) {
  const longest = `${kind.dim ? kind.label : ""}${kind.bounds.length - 2}`;
  const { down, wide } = LETTER_ROOM[kind.mark] ?? USUAL_ROOM;
  const size = Math.min(14, (wide * radius) / (0.7 * Math.max(2.4, longest.length)));
  if (size < 8) return () => {};
  return (group, x, y) => {
    context.font = `600 ${size}px ${theme.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = theme.letters;
    context.fillText(`${kind.dim ? kind.label : ""}${group}`, x, y + down * radius + 0.5);
  };
}
