// Where schedules stand when they are stacked: a block each, its head, and a row for every rank.
//
//   |  1f1b   makespan 33 …          head
//   |  rank 0   [F0][F1][B0] …       row: the bar of actions,
//   |           ___----____--        and below it the strip of activations
//   |  rank 1   …
//   |  zb-h1  …                      the next block

export const HEAD = 62;
const FOOT = 10;
const BAR = { least: 13, most: 30, tall: 44 };
const STRIP = { least: 9, most: 20, tall: 28 };
/** The height from which bars may be taller, as on a screen of 1,440 lines. */
const TALL = 1100;
const GAP = 3;

/**
 * @typedef {object} Block
 * @property {number} top
 * @property {number} rows  where the first row begins
 * @property {number} bottom
 * @property {number} ranks
 */

/** Lays blocks out; all measures are pixels from the top of the stack. */
export class Stack {
  /**
   * @param {number[]} ranks how many rows each block has
   * @param {number} height of what can be seen at once
   * @param {boolean} withStrips
   */
  constructor(ranks, height, withStrips) {
    const rows = ranks.reduce((sum, count) => sum + count, 0);
    const room = (height - ranks.length * (HEAD + FOOT)) / Math.max(1, rows) - GAP;
    const share = withStrips ? 0.62 : 1;
    const size = height > TALL ? "tall" : "most";
    this.bar = Math.round(Math.min(BAR[size], Math.max(BAR.least, room * share)));
    this.strip = withStrips
      ? Math.round(Math.min(STRIP[size], Math.max(STRIP.least, room * (1 - share))))
      : 0;
    this.row = this.bar + this.strip + GAP;
    let top = 0;
    /** @type {Block[]} */
    this.blocks = ranks.map((count) => {
      const block = {
        top,
        rows: top + HEAD,
        bottom: top + HEAD + count * this.row + FOOT,
        ranks: count,
      };
      top = block.bottom;
      return block;
    });
    this.height = top;
  }

  /** Returns where the row of a rank begins. @param {number} block @param {number} rank */
  rowTop(block, rank) {
    return this.blocks[block].rows + rank * this.row;
  }

  /**
   * Returns the block, the rank and the part of its row at a height; null between rows.
   * @param {number} y
   * @returns {{block: number, rank: number, isStrip: boolean} | null}
   */
  at(y) {
    const block = this.blocks.findIndex(
      ({ rows, ranks }) => y >= rows && y < rows + ranks * this.row,
    );
    if (block < 0) return null;
    const within = y - this.blocks[block].rows;
    const rank = Math.floor(within / this.row);
    const below = within - rank * this.row;
    if (below >= this.bar + this.strip + 1) return null;
    return { block, rank, isStrip: this.strip > 0 && below > this.bar };
  }

  /**
   * Returns the ranks of a block whose rows meet [from, to], as a first and a last one.
   * @param {number} block
   * @param {number} from
   * @param {number} to
   */
  ranksBetween(block, from, to) {
    const { rows, ranks } = this.blocks[block];
    const first = Math.max(0, Math.floor((from - rows) / this.row));
    const last = Math.min(ranks, Math.ceil((to - rows) / this.row));
    return { first, last: Math.max(first, last) };
  }
}
