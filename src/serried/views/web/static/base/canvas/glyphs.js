// Letters and digits as small masks, drawn pixel by pixel: thousands of labels in a millisecond or
// two.

/** @typedef {{wide: number, high: number, alpha: Uint8Array}} Glyph */

/** Holds the masks of one font at one size. */
export class Glyphs {
  /** @param {string} family @param {number} size in pixels of the screen */
  constructor(family, size) {
    this.key = `${size}px ${family}`;
    this.high = Math.ceil(size * 1.3);
    /** @type {Map<string, Glyph>} */
    this.masks = new Map();
    this.pen = /** @type {OffscreenCanvasRenderingContext2D} */ (
      new OffscreenCanvas(4 * this.high, this.high).getContext("2d", { willReadFrequently: true })
    );
  }

  /**
   * Returns the mask of a letter, made when it is first drawn.
   * @param {string} letter
   * @returns {Glyph}
   */
  mask(letter) {
    const made = this.masks.get(letter) ?? this._mask(this.pen, letter);
    this.masks.set(letter, made);
    return made;
  }

  /** @param {OffscreenCanvasRenderingContext2D} pen @param {string} letter @returns {Glyph} */
  _mask(pen, letter) {
    pen.font = this.key;
    pen.textBaseline = "middle";
    const wide = Math.max(1, Math.round(pen.measureText(letter).width));
    pen.clearRect(0, 0, pen.canvas.width, pen.canvas.height);
    pen.fillText(letter, 0, this.high / 2);
    const { data } = pen.getImageData(0, 0, wide, this.high);
    return {
      wide,
      high: this.high,
      alpha: Uint8Array.from({ length: wide * this.high }, (_, i) => data[4 * i + 3]),
    };
  }

  /** Returns how wide a text is, in pixels of the screen. @param {string} text */
  width(text) {
    let wide = 0;
    for (const letter of text) wide += this.mask(letter).wide;
    return wide;
  }

  /**
   * Draws a text about a point.
   * @param {import("./pixels.js").Pixels} pixels
   * @param {string} text
   * @param {number} centre
   * @param {number} middle
   * @param {number} ink a pixel
   * @param {number} strength 0..1
   */
  draw(pixels, text, centre, middle, ink, strength) {
    if (pixels.letters) return pixels.letters(this.key, text, centre, middle, ink, strength);
    let x = Math.round(centre - this.width(text) / 2);
    const top = Math.round(middle - this.high / 2);
    for (const letter of text) {
      const glyph = this.mask(letter);
      stamp(pixels, glyph, x, top, ink, strength);
      x += glyph.wide;
    }
  }
}

/**
 * @param {import("./pixels.js").Pixels} pixels
 * @param {Glyph} glyph
 * @param {number} left
 * @param {number} top
 * @param {number} ink
 * @param {number} strength
 */
function stamp({ data, width, height }, glyph, left, top, ink, strength) {
  const [r, g, b] = [ink & 255, (ink >> 8) & 255, (ink >> 16) & 255];
  for (let dy = Math.max(0, -top); dy < glyph.high && top + dy < height; dy++) {
    for (let dx = 0; dx < glyph.wide; dx++) {
      const share = (glyph.alpha[dy * glyph.wide + dx] / 255) * strength;
      if (!share) continue;
      const at = (top + dy) * width + left + dx;
      const under = data[at];
      const [ur, ug, ub] = [under & 255, (under >> 8) & 255, (under >> 16) & 255];
      data[at] =
        (0xff000000 |
          ((ub + (b - ub) * share) << 16) |
          ((ug + (g - ug) * share) << 8) |
          (ur + (r - ur) * share)) >>>
        0;
    }
  }
}
