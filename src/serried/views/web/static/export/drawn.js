// What painters put into pixels, kept as shapes instead: boxes, slanting lines and letters.

import { Pixels } from "../base/canvas/pixels.js";
import { css } from "../base/theme.js";

/** @typedef {import("./vector.js").Vector} Vector */
/** @typedef {import("../base/canvas/pixels.js").Slants} Slants */

/** Stands for a picture of pixels of the same size. */
export class DrawnPixels extends Pixels {
  constructor() {
    super();
    /** @type {((pen: Vector) => void)[]} */
    this.drawn = [];
    /** @type {import("../base/canvas/pixels.js").Letters} */
    this.letters = (font, text, centre, middle, ink, strength) => {
      this.drawn.push((pen) => {
        Object.assign(pen, { font, textAlign: "center", textBaseline: "middle" });
        pen.fillStyle = inkOf(ink);
        pen.globalAlpha = strength;
        pen.fillText(text, centre, middle);
        pen.globalAlpha = 1;
      });
    };
  }

  /** @param {number} width @param {number} height @param {number} colour */
  clear(width, height, colour) {
    Object.assign(this, { width, height });
    this.drawn = [];
    this.box(0, 0, width, height, colour);
  }

  /**
   * @param {number} left @param {number} top @param {number} right @param {number} bottom
   * @param {number} colour
   */
  box(left, top, right, bottom, colour) {
    if (right <= left || bottom <= top) return;
    this.drawn.push((pen) => {
      pen.fillStyle = inkOf(colour);
      pen.fillRect(left, top, right - left, bottom - top);
    });
  }

  /** @param {Uint32Array} line @param {number} left @param {number} top @param {number} bottom */
  line(line, left, top, bottom) {
    for (let x = 0, next = 0; x < line.length; x = next) {
      for (next = x + 1; next < line.length && line[next] === line[x];) next++;
      this.box(left + x, top, left + next, bottom, line[x]);
    }
  }

  /** @param {Slants} slants */
  slant({ left, top, right, bottom, origin, slope, period, thick, colour }) {
    this.drawn.push((pen) => {
      pen.save();
      pen.beginPath();
      pen.rect(left, top, right - left, bottom - top);
      pen.clip();
      pen.strokeStyle = inkOf(colour);
      pen.lineWidth = thick;
      pen.beginPath();
      const high = bottom - top;
      const first = origin + Math.floor((left - high - origin) / period) * period;
      for (let x = first; x < right + high + period; x += period) {
        pen.moveTo(x + thick / 2, top);
        pen.lineTo(x + thick / 2 - slope * high, bottom);
      }
      pen.stroke();
      pen.restore();
    });
  }

  /** Draws all, in pixels of the screen. @param {CanvasRenderingContext2D} context */
  put(context) {
    const pen = /** @type {Vector} */ (/** @type {unknown} */ (context));
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    this.drawn.forEach((draw) => draw(pen));
    pen.restore();
  }
}

/** Returns a pixel, 0xAABBGGRR, as a colour. @param {number} pixel */
function inkOf(pixel) {
  return css(((pixel & 255) << 16) | (pixel & 0xff00) | ((pixel >> 16) & 255));
}
