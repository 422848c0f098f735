// A picture made pixel by pixel, for what is too dense to draw shape by shape; put down in one
// call.

/**
 * @typedef {object} ColumnColours
 * @property {number} fill
 * @property {number} edge
 * @property {number} over  above `line` pixels
 * @property {number} line
 */

/**
 * @typedef {object} Slants  slanting lines over a box, which move with it
 * @property {number} left
 * @property {number} top
 * @property {number} right
 * @property {number} bottom
 * @property {number} origin  where a line meets the top of the box
 * @property {number} slope   1 falls to the left, -1 to the right
 * @property {number} period  pixels from line to line
 * @property {number} thick
 * @property {number} colour
 */

/**
 * @typedef {(font: string, text: string, centre: number, middle: number, ink: number,
 *   strength: number) => void} Letters
 */

/** Holds pixels of the screen, 0xAABBGGRR. */
export class Pixels {
  constructor() {
    this.width = 0;
    this.height = 0;
    /** @type {ImageData | null} */
    this.image = null;
    this.data = new Uint32Array(0);
    /** Takes texts as letters where their pixels are not wanted. @type {Letters | null} */
    this.letters = null;
  }

  /**
   * Takes a size and fills all with one colour.
   * @param {number} width
   * @param {number} height
   * @param {number} colour
   */
  clear(width, height, colour) {
    if (!this.image || width !== this.width || height !== this.height) {
      Object.assign(this, { width, height });
      this.image = new ImageData(width, height);
      this.data = new Uint32Array(this.image.data.buffer);
    }
    this.data.fill(colour);
  }

  /**
   * Fills a box.
   * @param {number} left
   * @param {number} top
   * @param {number} right
   * @param {number} bottom
   * @param {number} colour
   */
  box(left, top, right, bottom, colour) {
    const [from, to] = [Math.max(0, left), Math.min(this.width, right)];
    if (to <= from) return;
    for (let y = Math.max(0, top); y < Math.min(this.height, bottom); y++) {
      this.data.fill(colour, y * this.width + from, y * this.width + to);
    }
  }

  /**
   * Repeats a line of pixels in the rows [top, bottom).
   * @param {Uint32Array} line
   * @param {number} left
   * @param {number} top
   * @param {number} bottom
   */
  line(line, left, top, bottom) {
    for (let y = Math.max(0, top); y < Math.min(this.height, bottom); y++)
      this.data.set(line, y * this.width + left);
  }

  /**
   * Draws columns that stand on `bottom`: `heights[x]` pixels high, the line along their tops an
   * edge.
   * @param {Float64Array} heights
   * @param {number} left
   * @param {number} top
   * @param {number} bottom
   * @param {ColumnColours} colours
   */
  columns(heights, left, top, bottom, { fill, edge, over, line }) {
    const most = bottom - top;
    const high = (/** @type {number} */ x) => Math.min(most, Math.round(heights[x] ?? 0));
    for (let x = 0, next = 0; x < heights.length; x = next) {
      const here = high(x);
      for (next = x + 1; next < heights.length && high(next) === here;) next++;
      const [from, to] = [left + x, left + next];
      const under = Math.min(here, Math.floor(line));
      this.box(from, bottom - under, to, bottom, fill);
      this.box(from, bottom - here, to, bottom - under, over);
      if (here) this.box(from, bottom - here, to, bottom - here + 1, here > line ? over : edge);
      // Where the level steps the line runs down, on the side of the higher column.
      if (x && high(x - 1) < here)
        this.box(from, bottom - here, from + 1, bottom - high(x - 1), here > line ? over : edge);
      if (next < heights.length && high(next) < here)
        this.box(to - 1, bottom - here, to, bottom - high(next), here > line ? over : edge);
    }
  }

  /** Draws slanting lines over a box. @param {Slants} slants */
  slant({ left, top, right, bottom, origin, slope, period, thick, colour }) {
    const { data, width, height } = this;
    for (let y = Math.max(0, top); y < Math.min(height, bottom); y++) {
      const shift = (((slope * (y - top) + left - origin) % period) + period) % period;
      for (let x = left - shift; x < right; x += period) {
        for (let more = 0; more < thick; more++)
          if (x + more >= left && x + more < right) data[y * width + x + more] = colour;
      }
    }
  }

  /** Puts the picture on a canvas. @param {CanvasRenderingContext2D} context */
  put(context) {
    if (this.image) context.putImageData(this.image, 0, 0);
  }
}

/**
 * Mixes two pixels: `share` of the second.
 * @param {number} one
 * @param {number} other
 * @param {number} share
 */
export function mixed(one, other, share) {
  let pixel = 0xff000000;
  for (const shift of [0, 8, 16]) {
    const [a, b] = [(one >> shift) & 255, (other >> shift) & 255];
    pixel |= Math.round(a + (b - a) * share) << shift;
  }
  return pixel >>> 0;
}
