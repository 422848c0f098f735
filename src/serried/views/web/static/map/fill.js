// Cells too small or too many to draw one by one: each a box of pixels of one colour, all put down
// at once. While the view of many cells moves, a picture of all of them is enlarged in their place.

import { pixel } from "../base/theme.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {{x: number, y: number, scale: number}} View */

const LEAST_GAP = 1.6;
/** Ranks from which a frame that the next one follows is an enlarged picture. */
export const MANY = 6000;
const LARGE_PIXELS = 1_500_000;

/**
 * Tells whether a map has so many cells and pixels that fewer pixels must do while it moves.
 * @param {{width: number, height: number, sharp: number}} surface
 * @param {number} ranks
 */
export function isLarge({ width, height, sharp }, ranks) {
  return ranks >= MANY && width * height * sharp ** 2 > LARGE_PIXELS;
}

/** Draws a map's cells as pixels. */
export class CellPixels {
  constructor() {
    this.all = new Sheet();
    this.part = new Sheet();
    /** What the picture of all was made of. @type {unknown[]} */
    this.of = [];
  }

  /**
   * Draws every cell in view.
   * @param {Picture} picture
   * @param {CanvasRenderingContext2D} context
   */
  paint(picture, context) {
    const { camera, home, isMoving, shade } = picture;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (isMoving && shade.colours.length >= MANY) {
      this._draw(picture);
      enlarge(this.all.canvas, picture, context);
    } else {
      const isAll = camera.scale === home.scale && camera.x === home.x && camera.y === home.y;
      if (isAll) this._draw(picture);
      else this.part.draw(picture, camera);
      context.drawImage((isAll ? this.all : this.part).canvas, 0, 0);
    }
    context.restore();
  }

  /** Draws the picture of all, unless it is drawn. @param {Picture} picture */
  _draw(picture) {
    const { home, nest, shade, surface, theme } = picture;
    const { width, height, sharp } = surface;
    const of = [nest, shade, width, height, sharp, theme.cell];
    if (of.every((each, i) => each === this.of[i])) return;
    this.all.draw(picture, home);
    this.of = of;
  }
}

/** Holds pixels on a canvas of their own. */
class Sheet {
  constructor() {
    this.canvas = new OffscreenCanvas(1, 1);
    this.context = /** @type {OffscreenCanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    /** @type {ImageData | null} */
    this.image = null;
    this.data = new Uint32Array(0);
  }

  /** Draws the cells as a view shows them. @param {Picture} picture @param {View} view */
  draw(picture, view) {
    const { surface } = picture;
    const [width, height] = [surface.width, surface.height].map((each) =>
      Math.max(1, Math.round(each * surface.sharp)),
    );
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.image = new ImageData(width, height);
      this.data = new Uint32Array(this.image.data.buffer);
    }
    this.data.fill(0);
    this._fill(picture, view, width, height);
    this.context.putImageData(this.image, 0, 0);
  }

  /** @param {Picture} picture @param {View} view @param {number} width @param {number} height */
  _fill({ nest, surface, shade, theme }, view, width, height) {
    const scale = view.scale * surface.sharp;
    const gap = scale * Math.min(1, nest.aspect) >= 4 ? Math.round(surface.sharp) : 0;
    const across = edges(nest.x, view.x, scale, nest.aspect, width, gap);
    const down = edges(nest.y, view.y, scale, 1, height, gap);
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
      const colour = rgb < 0 ? none : pixel(rgb);
      for (let y = top; y < bottom; y++) {
        const row = y * width;
        for (let x = left; x < right; x++) data[row + x] = colour;
      }
    }
  }
}

/**
 * Draws the picture of all cells as the camera shows them.
 * @param {OffscreenCanvas} all
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
function enlarge(all, { camera, home, surface }, context) {
  const { density, sharp } = surface;
  const { width, height } = all;
  const ratio = camera.scale / home.scale;
  // The part that is in view alone: what lies outside would be scaled in vain.
  const left = Math.max(0, (camera.x - home.x) * home.scale * sharp);
  const top = Math.max(0, (camera.y - home.y) * home.scale * sharp);
  const right = Math.min(width, left + width / ratio);
  const bottom = Math.min(height, top + height / ratio);
  const larger = (ratio * density) / sharp;
  const x = (home.x - camera.x) * camera.scale * density + left * larger;
  const y = (home.y - camera.y) * camera.scale * density + top * larger;
  context.imageSmoothingEnabled = false;
  context.drawImage(
    all,
    ...[left, top, right - left, bottom - top],
    ...[x, y, (right - left) * larger, (bottom - top) * larger],
  );
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
