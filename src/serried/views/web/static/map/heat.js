// A figure of every rank as colour: where each value lies between the least and the most.

import { duration } from "../base/clock.js";
import { readPayload } from "../base/payload.js";
import { t } from "../base/i18n.js";
import { percentText } from "../base/quantity.js";

/** @typedef {{rank: number, value: number}} Outlier */

/** Holds one figure of all ranks, as Python sends it. */
export class Heat {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    /** @type {string} */
    this.figure = header.figure;
    /** Every figure there is to choose from. @type {string[]} */
    this.figures = header.figures;
    /** @type {"share" | "ns" | "ratio" | "state"} */
    this.unit = header.unit;
    /** @type {number} */
    this.least = header.least;
    /** @type {number} */
    this.median = header.median;
    /** @type {number} */
    this.most = header.most;
    /** The ranks farthest from the median. @type {Outlier[]} */
    this.farthest = header.farthest;
    /** From little to much. @type {{light: string[], dark: string[]}} */
    this.colours = header.colours;
    this.values = /** @type {Float64Array} */ (columns.get("value"));
  }

  /** Returns where a value lies: 0 for the least, 1 for the most. @param {number} value */
  level(value) {
    return this.most > this.least ? (value - this.least) / (this.most - this.least) : 0;
  }

  /**
   * Returns the colour of a rank as 0xRRGGBB, -1 where its value is not known.
   * @param {number} rank
   * @param {boolean} dark
   */
  colour(rank, dark) {
    const value = this.values[rank];
    return value === undefined || Number.isNaN(value)
      ? -1
      : rampColour(dark ? this.colours.dark : this.colours.light, this.level(value));
  }

  /** Writes a value with its unit. @param {number} value */
  text(value) {
    if (this.unit === "state") return value ? t(`diagnose.mark${value}`) : "";
    const text = this._size(value);
    return value < 0 && text !== this._size(0) ? `−${text}` : text;
  }

  /** Writes how far a value is from the median. @param {number} value */
  difference(value) {
    return `${value < this.median ? "−" : "+"}${this._size(value - this.median)}`;
  }

  /** The ranks that stand out by more than is written of a value. */
  get outliers() {
    return this.farthest.filter(({ value }) => this._size(value - this.median) !== this._size(0));
  }

  /** @param {number} value */
  _size(value) {
    if (this.unit === "ratio") return `${Math.abs(value).toFixed(2)} ×`;
    return this.unit === "share" ? percentText(Math.abs(value)) : duration(Math.abs(value));
  }
}

/**
 * Returns the colour at `level`, 0 to 1, of a ramp of equal steps, as 0xRRGGBB.
 * @param {string[]} ramp
 * @param {number} level
 */
export function rampColour(ramp, level) {
  const at = Math.min(1, Math.max(0, level)) * (ramp.length - 1);
  const below = Math.min(ramp.length - 2, Math.floor(at));
  const [low, high] = [ramp[below], ramp[below + 1]].map((colour) => parseInt(colour.slice(1), 16));
  let mixed = 0;
  for (const shift of [16, 8, 0]) {
    const [from, to] = [(low >> shift) & 255, (high >> shift) & 255];
    mixed |= Math.round(from + (to - from) * (at - below)) << shift;
  }
  return mixed;
}

/** Tells whether dark letters read better on a colour than light ones. @param {number} rgb */
export function isPale(rgb) {
  const [red, green, blue] = [16, 8, 0].map((shift) => (((rgb >> shift) & 255) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.22;
}
