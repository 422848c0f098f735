// Cells too small or too many to draw one by one: each a box of pixels of one colour, all put down
// at once.

import { pixel } from "../base/theme.js";

/** @typedef {import("./picture.js").Picture} Picture */

const LEAST_GAP = 1.6;

/** Holds the pixels of a map's cells, on a canvas that can be drawn at any scale. */
export class CellPixels {
  constructor() {
    this.canvas = new OffscreenCanvas(1, 1);
    this.context = /** @type {OffscreenCanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    /** @type {ImageData | null} */
    this.image = null;
    this.data = new Uint32Array(0);
  }

  /**
   * Draws every cell in view.
   * @param {Picture} picture
   * @param {CanvasRenderingContext2D} context
   */
  paint(picture, context) {
    const { canvas } = picture.surface;
    this._take(canvas.width, canvas.height);
    this._fill(picture);
    this.context.putImageData(/** @type {ImageData} */ (this.image), 0, 0);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.canvas, 0, 0);
    context.restore();
  }

  /** @param {number} width @param {number} height */
  _take(width, height) {
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.image = new ImageData(width, height);
      this.data = new Uint32Array(this.image.data.buffer);
    }
    this.data.fill(0);
  }

  /** @param {Picture} picture */
  _fill({ nest, camera, surface, shade, theme }) {
    const { width, height } = surface.canvas;
    const scale = camera.scale * surface.density;
    const gap = scale * Math.min(1, nest.aspect) >= 4 ? Math.round(surface.density) : 0;
    const across = edges(nest.x, camera.x, scale, nest.aspect, width, gap);
    const down = edges(nest.y, camera.y, scale, 1, height, gap);
    const { columnOf, rowOf } = nest;
    const { colours } = shade;
    const none = pixel(theme.cell);
    const { data } = this;
    for (let rank = 0; rank < colours.length; rank++) {
      const left = across.from[columnOf[rank]];
      const right = across.to[columnOf[rank]];
      const top = down.from[rowOf[rank]];
      const bottom = down.to[rowOf[rank]];
      if (left >= right || top >= bottom) continue;
      const rgb = colours[rank];
      const colour =
        rgb < 0 ? none : (0xff000000 | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
      for (let y = top; y < bottom; y++) {
        const row = y * width;
        for (let x = left; x < right; x++) data[row + x] = colour;
      }
    }
  }
}

/**
 * Returns the pixels that each column, or row, of cells covers; none where it is out of view.
 * @param {Float64Array} starts
 * @param {number} origin
 * @param {number} scale
 * @param {number} size  of a cell
 * @param {number} most  pixels of the canvas
 * @param {number} gap
 */
function edges(starts, origin, scale, size, most, gap) {
  const from = new Int32Array(starts.length);
  const to = new Int32Array(starts.length);
  for (let i = 0; i < starts.length; i++) {
    const first = Math.round((starts[i] - origin) * scale);
    const end = Math.max(first + 1, Math.round((starts[i] + size - origin) * scale) - gap);
    from[i] = Math.max(0, first);
    // Gaps of about a pixel would come and go with the rounding, and make a pattern of their own.
    const next = (starts[i + 1] - origin) * scale;
    const isClose = next > first && next - (starts[i] + size - origin) * scale < LEAST_GAP;
    to[i] = Math.min(most, isClose && !gap ? Math.max(first + 1, Math.round(next)) : end);
  }
  return { from, to };
}
