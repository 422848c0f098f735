// What differs from a layout beside: an outline around ranks that do, neighbours within one. It
// stands on a canvas above all others, so that no veil over the map dims it.

import { Surface } from "../base/canvas/surface.js";
import { make } from "../base/dom.js";

/** @typedef {import("./picture.js").Picture} Picture */

const WIDTH = 2;

/** Holds what differs, and the canvas of its outlines, which is made once something does. */
export class Differing {
  /** @param {Surface} below  what the canvas is to stand on */
  constructor(below) {
    this.below = below;
    /** @type {Uint8Array | null} */
    this.ranks = null;
    /** @type {Surface | null} */
    this.surface = null;
  }

  /** Draws the outlines of what stands still. @param {Picture | null} picture */
  draw(picture) {
    if (!this.ranks || !picture || picture.isMoving) return this.surface?.wipe();
    this.surface ??= this._make();
    this.surface.resize();
    return paintDiffering(picture, this.surface.begin(), this.ranks);
  }

  _make() {
    const { canvas, frame } = this.below;
    const above = make("canvas", { class: "differing", "aria-hidden": "true" });
    canvas.after(above);
    return new Surface(/** @type {HTMLCanvasElement} */ (above), frame);
  }
}

/**
 * Draws the outline.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Uint8Array} differs  of each rank
 */
function paintDiffering({ nest, camera, theme }, context, differs) {
  const { scale } = camera;
  const { columnOf, rowOf, x, y, aspect } = nest;
  const columns = x.length;
  const marked = new Uint8Array(columns * y.length);
  for (let rank = 0; rank < columnOf.length; rank++)
    marked[rowOf[rank] * columns + columnOf[rank]] = differs[rank];
  context.strokeStyle = theme.alarm;
  context.lineWidth = Math.min(WIDTH, Math.max(1, scale / 8));
  context.beginPath();
  for (let row = 0; row < y.length; row++) {
    const top = (y[row] - camera.y) * scale;
    const bottom = top + scale;
    for (let column = 0; column < columns; column++) {
      const at = row * columns + column;
      if (!marked[at]) continue;
      const left = (x[column] - camera.x) * scale;
      const right = left + aspect * scale;
      const line = (/** @type {number[]} */ [x0, y0, x1, y1]) => {
        context.moveTo(x0, y0);
        context.lineTo(x1, y1);
      };
      if (!isNext(y, row - 1, 1) || !marked[at - columns]) line([left, top, right, top]);
      if (!isNext(y, row, 1) || !marked[at + columns]) line([left, bottom, right, bottom]);
      if (!isNext(x, column - 1, aspect) || !marked[at - 1]) line([left, top, left, bottom]);
      if (!isNext(x, column, aspect) || !marked[at + 1]) line([right, top, right, bottom]);
    }
  }
  context.stroke();
}

/**
 * Tells whether the next column, or row, of cells begins where one ends.
 * @param {Float64Array} starts
 * @param {number} at
 * @param {number} size
 */
function isNext(starts, at, size) {
  return at >= 0 && at + 1 < starts.length && starts[at + 1] - starts[at] - size < 1e-6;
}
