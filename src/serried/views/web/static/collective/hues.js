// The colours of blocks: a hue for each owner, in one ramp, light enough for dark letters on them.

const FIRST_HUE = 255;
const HUES = 310;
const CHROMA = 0.105;
/** What is filled: dark letters reach a contrast of 4.5 on it, whatever the hue. */
const FILL = 0.76;
/** Edges and levels: a contrast of 3 with the page. */
const EDGE = 0.54;
const EDGE_ON_DARK = 0.86;
/** What is filled in part: pale, so that its level is what is seen. */
const PART = 0.87;
const PART_ON_DARK = 0.5;

/**
 * Returns the hue of an owner among so many, in degrees: neighbours far apart while they are few.
 * @param {number} owner
 * @param {number} count
 */
export function hueOf(owner, count) {
  return (FIRST_HUE + (HUES * owner) / Math.max(1, count)) % 360;
}

/** Makes the colours of an execution's blocks. */
export class Hues {
  /**
   * @param {ArrayLike<number>} owner  of each block
   * @param {number} count             of owners
   * @param {boolean} dark
   */
  constructor(owner, count, dark) {
    this.owner = owner;
    this.count = count;
    this.dark = dark;
    /** @type {Map<string, string>} */
    this.made = new Map();
  }

  /** Returns the colour of a block that is whole, or on its way. @param {number} block */
  fill(block) {
    return this._of(block, FILL, 1);
  }

  /** Returns the colour of a block of which some is still missing. @param {number} block */
  part(block) {
    return this._of(block, this.dark ? PART_ON_DARK : PART, 0.6);
  }

  /**
   * Returns the colour of a block of which a share is there, for cells too narrow for a level.
   * @param {number} block
   * @param {number} share
   */
  shade(block, share) {
    const [none, all] = this.dark ? [0.3, 0.84] : [0.95, 0.6];
    return this._of(block, Number((none + (all - none) * share).toFixed(2)), 0.3 + 0.9 * share);
  }

  /** Returns the colour of a block's edge. @param {number} block */
  edge(block) {
    return this._of(block, this.dark ? EDGE_ON_DARK : EDGE, 1.2);
  }

  /** @param {number} block @param {number} lightness @param {number} strength */
  _of(block, lightness, strength) {
    const owner = this.owner[block] ?? 0;
    const key = `${owner} ${lightness}`;
    const hue = hueOf(owner, this.count).toFixed(1);
    const colour = this.made.get(key) ?? `oklch(${lightness} ${CHROMA * strength} ${hue})`;
    this.made.set(key, colour);
    return colour;
  }
}
