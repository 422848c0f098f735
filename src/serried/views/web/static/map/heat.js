// A figure of every rank as colour: where each value lies on a scale from 0, or around the median.

import { duration } from "../base/clock.js";
import { readPayload } from "../base/payload.js";
import { t } from "../base/i18n.js";
import { bytesText, percentText } from "../base/quantity.js";

/** @typedef {{rank: number, value: number}} Outlier */
/** @typedef {{low: number, high: number, is_balanced: boolean}} Scale */

/** Holds one figure of all ranks, as Python sends it. */
export class Heat {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    /** @type {string} */
    this.figure = header.figure;
    /** Every figure there is to choose from. @type {string[]} */
    this.figures = header.figures;
    /** @type {"share" | "ns" | "ratio" | "state" | "bytes"} */
    this.unit = header.unit;
    /** What units of bytes count by: 1024 of memory, 1000 of traffic. @type {1024 | 1000} */
    this.base = header.base ?? 1024;
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
    /** From below what is usual to above. @type {{light: string[], dark: string[]}} */
    this.balance = header.balance ?? header.colours;
    /** Every scale there is to choose from. @type {Record<string, Scale>} */
    this.scales = header.scales ?? {};
    /** The name of the scale in use. @type {string} */
    this.scale = this.usual = header.scale ?? "";
    /** Of states, how many ranks are in each. @type {Record<string, number>} */
    this.counts = header.counts ?? {};
    this.values = /** @type {Float64Array} */ (columns.get("value"));
    /** The ranks of the value that was asked for last. */
    this.at = { value: NaN, ranks: /** @type {number[]} */ ([]) };
  }

  /** Returns the ranks that have a value. @param {number} value */
  ranksAt(value) {
    const { at } = this;
    if (at.value !== value) Object.assign(at, { value, ranks: ranksAt(this.values, value) });
    return at.ranks;
  }

  /** What the colours span. @returns {Scale} */
  get span() {
    const { least: low, most: high } = this;
    return this.scales[this.scale] ?? { low, high, is_balanced: false };
  }

  /** Chooses a scale, "" the usual one. @param {string} name */
  measure(name) {
    this.scale = name in this.scales ? name : this.usual;
  }

  /**
   * Returns where a value lies: 0 at the low end of the scale, 1 at the high.
   * @param {number} value
   */
  level(value) {
    const { low, high } = this.span;
    return high > low ? (value - low) / (high - low) : 0;
  }

  /** Returns the colours of the scale in use. @param {boolean} dark */
  ramp(dark) {
    const ramps = this.span.is_balanced ? this.balance : this.colours;
    return dark ? ramps.dark : ramps.light;
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
      : rampColour(this.ramp(dark), this.level(value));
  }

  /** Writes a value with its unit. @param {number} value */
  text(value) {
    if (this.unit === "state") return Number.isNaN(value) ? "" : t(`wait_mark.${value}`);
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
    if (this.unit === "bytes") return bytesText(Math.abs(value), this.base);
    if (this.unit === "ratio") return `${Math.abs(value).toFixed(2)} ×`;
    return this.unit === "share" ? percentText(Math.abs(value)) : duration(Math.abs(value));
  }
}

/** @param {Float64Array} values @param {number} value @returns {number[]} */
function ranksAt(values, value) {
  /** @type {number[]} */
  const ranks = [];
  for (let rank = 0; rank < values.length; rank++) if (values[rank] === value) ranks.push(rank);
  return ranks;
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
