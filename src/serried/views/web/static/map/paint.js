// Painting the map: boxes of nodes or stages, and in each rank's cell a mark per kind in view.
//
//   pixels per rank    what is drawn
//   below 14           blocks of colour, written straight into one ImageData
//   14 to 24           a coloured slot per kind
//   above 24           marks; above 34 the rank's number; letters where they fit
//
// With a figure in view the cell has its colour, and its value is written where it fits.

import { LETTER_ROOM, USUAL_ROOM, slotTable, traceMark } from "../base/marks.js";
import { css, pixel } from "../base/theme.js";
import { isPale } from "./heat.js";

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {import("./grid.js").Grid} Grid */
/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("../base/canvas/surface.js").Surface} Surface */
/** @typedef {import("../base/theme.js").Theme} Theme */
/**
 * @typedef {object} Picture
 * @property {Scene} scene
 * @property {Grid} grid
 * @property {Camera} camera
 * @property {Surface} surface
 * @property {Theme} theme
 * @property {import("./heat.js").Heat | null} heat
 * @property {(box: number) => string} boxName
 * @property {(stage: number) => string} stageName
 */

export const BLOCKS_BELOW = 14;
export const MARKS_FROM = 24;
const NUMBERS_FROM = 34;
export const INSET = 0.035;
const VALUES_FROM = 46;
const LIGHT_LETTERS = "#f4f7fb";

/** Draws the map. @param {Picture} picture */
export function paintMap(picture) {
  const context = picture.surface.begin();
  if (picture.camera.scale < BLOCKS_BELOW) paintBlocks(picture);
  else paintBoxes(picture, context);
  paintBoxNames(picture, context);
  if (picture.camera.scale < BLOCKS_BELOW) return;
  if (picture.heat) paintHeat(picture, picture.heat, context);
  else paintCells(picture, context);
}

/**
 * Returns where a kind's mark stands in a cell, in cell units: its centre and its radius.
 * @param {number} kind
 * @param {number} count
 * @param {number} scale
 */
export function slotOf(kind, count, scale) {
  const { columns, rows } = slotTable(count);
  const top = scale >= NUMBERS_FROM ? Math.min(0.24, 17 / scale) : 0.06;
  const width = (1 - 2 * INSET - 0.06) / columns;
  const height = (1 - INSET - 0.04 - top) / rows;
  const row = Math.floor(kind / columns);
  const inRow = Math.min(columns, count - row * columns);
  const left = 0.5 - (inRow * width) / 2;
  return {
    x: left + ((kind % columns) + 0.5) * width,
    y: top + (row + 0.5) * height,
    width,
    height,
    radius: 0.44 * Math.min(width, height),
  };
}

/** Returns the ranks of boxes in view. @param {Picture} picture */
export function* ranksInView({ scene, grid, camera, surface }) {
  const right = camera.x + surface.width / camera.scale;
  const bottom = camera.y + surface.height / camera.scale;
  for (let rank = 0; rank < scene.worldSize; rank++) {
    const x = grid.cellX(rank);
    const y = grid.cellY(rank);
    if (x + 1 >= camera.x && y + 1 >= camera.y && x <= right && y <= bottom) yield rank;
  }
}

/** @param {Picture} picture */
function paintBlocks({ scene, grid, camera, surface, theme, heat }) {
  const { canvas, density, context } = surface;
  const { width, height } = canvas;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(pixel(theme.box));
  const scale = camera.scale * density;
  /**
   * @param {number} x0
   * @param {number} y0
   * @param {number} x1
   * @param {number} y1
   * @param {number} colour
   * @param {number} gap
   */
  const block = (x0, y0, x1, y1, colour, gap) => {
    const left = Math.max(0, Math.round((x0 - camera.x) * scale));
    const top = Math.max(0, Math.round((y0 - camera.y) * scale));
    const right = Math.min(width, Math.max(left + 1, Math.round((x1 - camera.x) * scale) - gap));
    const bottom = Math.min(height, Math.max(top + 1, Math.round((y1 - camera.y) * scale) - gap));
    for (let y = top; y < bottom; y++) pixels.fill(colour, y * width + left, y * width + right);
  };
  for (let box = 0; box < grid.numBoxes; box++) {
    const { x, y, width: wide, height: high } = grid.box(box);
    block(x, y, x + wide, y + high, pixel(theme.edge), 0);
  }
  const empty = pixel(theme.cell);
  const gap = scale >= 4 ? 1 : 0;
  const { columns, rows } = slotTable(scene.kinds.length);
  for (let rank = 0; rank < scene.worldSize; rank++) {
    const x = grid.cellX(rank);
    const y = grid.cellY(rank);
    const warm = heat?.colour(rank, theme.dark) ?? -1;
    block(x, y, x + 1, y + 1, warm < 0 ? empty : pixel(warm), gap);
    if (heat) continue;
    scene.kinds.forEach(({ group, colour }, kind) => {
      if (group[rank] < 0) return;
      const row = Math.floor(kind / columns);
      const inRow = Math.min(columns, scene.kinds.length - row * columns);
      const left = x + (kind % columns) / inRow;
      const last = (kind % columns) + 1 === inRow;
      block(
        left,
        y + row / rows,
        left + 1 / inRow,
        y + (row + 1) / rows,
        pixel(colour[group[rank]]),
        last && row + 1 === rows ? gap : last ? gap : 0,
      );
    });
  }
  context.putImageData(image, 0, 0);
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintBoxes({ grid, camera, surface, theme }, context) {
  const { scale } = camera;
  context.lineWidth = 1;
  context.strokeStyle = theme.edge;
  context.fillStyle = theme.box;
  for (let box = 0; box < grid.numBoxes; box++) {
    const { x, y, width, height } = grid.box(box);
    const left = Math.round((x - camera.x) * scale) + 0.5;
    const top = Math.round((y - camera.y) * scale) + 0.5;
    if (left > surface.width || top > surface.height) continue;
    if (left + width * scale < 0 || top + height * scale < 0) continue;
    context.beginPath();
    context.roundRect(left, top, Math.round(width * scale), Math.round(height * scale), 5);
    context.fill();
    context.stroke();
  }
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintBoxNames({ grid, camera, surface, theme, boxName }, context) {
  const { scale } = camera;
  const size = Math.min(13, grid.header * scale * 0.78);
  if (size < 7.5) return;
  context.font = `600 ${size}px ${theme.font}`;
  context.fillStyle = theme.faint;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (let box = 0; box < grid.numBoxes; box++) {
    const { x, y, width } = grid.box(box);
    const left = (x + 0.16 - camera.x) * scale;
    const middle = (y + grid.header / 2 - camera.y) * scale + 1;
    if (left > surface.width || middle < 0 || middle > surface.height || left + width * scale < 0) {
      continue;
    }
    context.fillText(boxName(box), left, middle, (width - 0.3) * scale);
  }
}

/**
 * Fills each rank's cell with the colour of its value.
 * @param {Picture} picture
 * @param {import("./heat.js").Heat} heat
 * @param {CanvasRenderingContext2D} context
 */
function paintHeat(picture, heat, context) {
  const { grid, camera, theme } = picture;
  const { scale } = camera;
  const inset = INSET * scale;
  const size = Math.min(14, Math.max(8, scale * 0.16));
  for (const rank of ranksInView(picture)) {
    const left = (grid.cellX(rank) - camera.x) * scale;
    const top = (grid.cellY(rank) - camera.y) * scale;
    const warm = heat.colour(rank, theme.dark);
    context.fillStyle = warm < 0 ? theme.cell : css(warm);
    context.beginPath();
    context.roundRect(
      left + inset,
      top + inset,
      scale - 2 * inset,
      scale - 2 * inset,
      Math.min(4, scale / 10),
    );
    context.fill();
    const letters = warm < 0 ? theme.text : isPale(warm) ? theme.letters : LIGHT_LETTERS;
    if (scale >= NUMBERS_FROM) paintNumber(picture, context, rank, left, top, letters);
    if (scale < VALUES_FROM || warm < 0) continue;
    context.font = `${size}px ${theme.font}`;
    context.fillStyle = letters;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(
      heat.text(heat.values[rank]),
      left + scale / 2,
      top + 0.62 * scale,
      scale - 4 * inset,
    );
  }
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintCells(picture, context) {
  const { scene, grid, camera, theme } = picture;
  const { scale } = camera;
  const count = scene.kinds.length;
  const slots = scene.kinds.map((_, kind) => slotOf(kind, count, scale));
  const writers = scene.kinds.map((kind, i) =>
    letterer(picture, context, kind, slots[i].radius * scale),
  );
  for (const rank of ranksInView(picture)) {
    const left = (grid.cellX(rank) - camera.x) * scale;
    const top = (grid.cellY(rank) - camera.y) * scale;
    context.fillStyle = theme.cell;
    const inset = INSET * scale;
    context.beginPath();
    context.roundRect(
      left + inset,
      top + inset,
      scale - 2 * inset,
      scale - 2 * inset,
      Math.min(4, scale / 10),
    );
    context.fill();
    scene.kinds.forEach(({ group, colour, mark }, kind) => {
      if (group[rank] < 0) return;
      const { x, y, width, height, radius } = slots[kind];
      context.fillStyle = css(colour[group[rank]]);
      if (scale < MARKS_FROM) {
        context.fillRect(
          left + (x - width / 2) * scale,
          top + (y - height / 2) * scale,
          width * scale - 0.5,
          height * scale - 0.5,
        );
        return;
      }
      context.beginPath();
      traceMark(context, mark, left + x * scale, top + y * scale, radius * scale);
      context.fill();
      writers[kind](group[rank], left + x * scale, top + y * scale);
    });
    if (scale >= NUMBERS_FROM) paintNumber(picture, context, rank, left, top);
  }
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} rank
 * @param {number} left
 * @param {number} top
 * @param {string} [letters] on a coloured cell
 */
function paintNumber(
  { scene, camera, theme, stageName, heat },
  context,
  rank,
  left,
  top,
  letters = "",
) {
  const { scale } = camera;
  const size = Math.min(14, Math.max(9, scale * 0.16));
  // With a figure in view, outlines of peers stand one within another at the cell's edge.
  const outlines = heat && scale >= MARKS_FROM ? 3 * scene.kinds.length : 0;
  const inset = INSET * scale + Math.max(2, size * 0.3) + outlines;
  context.textBaseline = "top";
  context.textAlign = "left";
  context.font = `600 ${size}px ${theme.font}`;
  context.fillStyle = letters || theme.text;
  context.fillText(String(rank), left + inset, top + Math.max(outlines, inset * 0.8));
  if (scale < 64 || scene.job.num_stages < 2) return;
  context.textAlign = "right";
  context.font = `${size - 2}px ${theme.font}`;
  context.fillStyle = letters || theme.faint;
  context.fillText(
    stageName(scene.stage[rank]),
    left + scale - inset,
    top + Math.max(outlines + 1, inset * 0.9),
  );
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
  if (size < 7) return () => {};
  return (group, x, y) => {
    context.font = `600 ${size}px ${theme.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = theme.letters;
    context.fillText(`${kind.dim ? kind.label : ""}${group}`, x, y + down * radius + 0.5);
  };
}
