// Where things stand in the picture of a collective: ranks along a line, links in arcs above it,
// and below each rank the blocks that it holds.
//
//            .-----------.
//          .´  .---.      `.        arcs: the links of the step, the farther the higher
//         [ 0 ][ 1 ]  [ 2 ][ 3 ]    ranks, with a gap between nodes
//         [ 2 ][ 2 ]  [ 2 ][ 2 ]    pairs that each computes, in attention
//         [ ##][ # ]  [ # ][ # ]    blocks, a row each: full where all that is asked is held

/** @typedef {import("./execution.js").Place} Place */
/** @typedef {{x: number, y: number}} Point */
/**
 * @typedef {object} Arc
 * @property {Point} from
 * @property {Point} to
 * @property {number} rise  how far its controls stand above its ends
 */

const MARGIN = 8;
const NODE_GAP = 8;
const NAMES = 20;
/** Height of what ranks compute: a number, and a bar below it. */
export const WORK = 28;
const NODE_NAMES = 18;
const LEAST_ROW = 3;
const MOST_ROW = 24;
const MOST_COLUMN = 96;

/** Lays out the places of an execution in a box. */
export class Figure {
  /**
   * @param {Place[]} places
   * @param {number} numBlocks   0 where blocks are not shown
   * @param {number} width
   * @param {number} height
   * @param {boolean} [hasWork]  whether it is shown what ranks compute
   */
  constructor(places, numBlocks, width, height, hasWork = false) {
    this.places = places;
    this.width = width;
    this.height = height;
    const ranks = places.filter(({ ranks: count }) => count > 0);
    const borders = ranks.filter((place, i) => i > 0 && place.node !== ranks[i - 1].node).length;
    const room = width - 2 * MARGIN;
    this.gap = borders ? Math.min(NODE_GAP, (0.3 * room) / (borders + ranks.length)) : 0;
    if (ranks.some(({ nodes }) => nodes > 1) || borders === ranks.length - 1) this.gap = 0;
    this.column = Math.min(MOST_COLUMN, (room - borders * this.gap) / ranks.length);
    const names = NAMES + (hasWork ? WORK : 0);
    const below = names + NODE_NAMES;
    const most = numBlocks ? 0.46 * height : height - below - 24;
    this.line = Math.max(30, Math.min(most, 32 + 9 * Math.sqrt(ranks.length) * 3));
    this.top = this.line + names;
    const space = Math.max(0, height - this.top - NODE_NAMES);
    /** Rows of blocks; each stands for several where there are more than fit. */
    this.rows = Math.min(numBlocks, Math.floor(space / LEAST_ROW));
    this.row = this.rows ? Math.min(MOST_ROW, space / this.rows) : 0;
    this.bottom = this.top + this.rows * this.row;
    this.x = this._across(ranks.length, borders);
  }

  /** @param {number} count @param {number} borders */
  _across(count, borders) {
    const wide = count * this.column + borders * this.gap;
    let x = (this.width - wide) / 2;
    let before = -1;
    /** @type {Map<number, number[]>} */
    const ofNode = new Map();
    return this.places.map(({ ranks, node }) => {
      if (!ranks) {
        const own = ofNode.get(node) ?? [this.width / 2];
        return (own[0] + own[own.length - 1]) / 2;
      }
      if (before >= 0 && node !== before) x += this.gap;
      before = node;
      const middle = x + this.column / 2;
      x += this.column;
      ofNode.set(node, [...(ofNode.get(node) ?? []), middle]);
      return middle;
    });
  }

  /** Returns where a link leaves a place, or reaches it. @param {number} place */
  end(place) {
    const isSwitch = !this.places[place].ranks;
    return { x: this.x[place], y: isSwitch ? 16 : this.line };
  }

  /** Returns the way of a link. @param {number} source @param {number} target @returns {Arc} */
  arc(source, target) {
    const [from, to] = [this.end(source), this.end(target)];
    const aside = Math.min(5, this.column / 6) * Math.sign(to.x - from.x);
    if (from.y !== to.y) return { from, to, rise: 0 };
    const far = Math.abs(to.x - from.x) / Math.max(1, this.width - 2 * MARGIN);
    // Back and forth between two ranks are two arcs, so that neither hides the other.
    const back = to.x < from.x ? 7 : 0;
    const rise = Math.min(this.line - 12, 10 + (this.line - 26) * Math.sqrt(far) + back);
    return {
      from: { x: from.x + aside, y: from.y },
      to: { x: to.x - aside, y: to.y },
      rise: (4 / 3) * rise,
    };
  }

  /**
   * Returns the blocks [first, end) that a row stands for.
   * @param {number} row
   * @param {number} n  blocks in all
   */
  blocksOf(row, n) {
    return [Math.floor((row * n) / this.rows), Math.floor(((row + 1) * n) / this.rows)];
  }

  /**
   * Returns stretches of places on one node: the first, the last, and the node.
   * @returns {{first: number, last: number, node: number}[]}
   */
  nodes() {
    /** @type {{first: number, last: number, node: number}[]} */
    const found = [];
    this.places.forEach(({ ranks, node }, place) => {
      const newest = found[found.length - 1];
      if (!ranks) return;
      if (newest && newest.node === node) newest.last = place;
      else found.push({ first: place, last: place, node });
    });
    return found;
  }
}

/**
 * Returns the point of an arc at a share of its way.
 * @param {Arc} arc
 * @param {number} share
 * @returns {Point}
 */
export function along({ from, to, rise }, share) {
  const rest = 1 - share;
  const bend = 3 * rest * share * rise;
  return {
    x: from.x * rest * rest * (rest + 3 * share) + to.x * share * share * (share + 3 * rest),
    y: from.y * rest * rest * (rest + 3 * share) + to.y * share * share * (share + 3 * rest) - bend,
  };
}

/**
 * Returns the point of a curve with one control at a share of its way.
 * @param {{x: number, y: number}} from
 * @param {{x: number, y: number}} bend
 * @param {{x: number, y: number}} to
 * @param {number} share
 */
export function between(from, bend, to, share) {
  const rest = 1 - share;
  const mix = (/** @type {"x" | "y"} */ axis) =>
    rest * rest * from[axis] + 2 * rest * share * bend[axis] + share * share * to[axis];
  return { x: mix("x"), y: mix("y") };
}
