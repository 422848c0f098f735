// The lines of the timeline from the top: ranks, under the headings of the groups they are in.
//
//   ▾ DP 0 · 2 ranks            a heading
//     rank 0  ▇▇▁▇▇▁▁▇▇
//     rank 2  ▁▇▇▁▇▇▁▁▇
//   ▸ DP 1 · 2 ranks  71 %  ▅▆▅▆▅   folded: what its ranks did, added up

/** @typedef {import("./tracks.js").Row} Row */
/**
 * @typedef {object} Grouping
 * @property {string} by
 * @property {string} label
 * @property {Int32Array} of  the group of each row; those in none have one of their own, the last
 * @property {Int32Array} size
 * @property {Float64Array} busy
 * @property {boolean} hasRest
 */
/**
 * @typedef {object} Line
 * @property {Row | null} row  null for a heading
 * @property {number} group
 * @property {boolean} folded
 * @property {number} top
 * @property {number} high
 */

export const HEADING = 22;
const LEAST_ROW = 14;
const MOST_ROW = 72;

/** Lays the lines out. */
export class Lines {
  /**
   * @param {Row[]} rows
   * @param {Grouping | null} grouping
   * @param {Set<number>} folded groups
   * @param {number} height to fill
   */
  constructor(rows, grouping, folded, height) {
    this.grouping = grouping;
    const groups = grouping ? grouped(rows, grouping) : [{ group: -1, rows }];
    const shown = groups.reduce(
      (sum, each) => sum + (grouping && folded.has(each.group) ? 0 : each.rows.length),
      0,
    );
    const free = height - (grouping ? groups.length * HEADING : 0);
    this.rowHeight = Math.min(MOST_ROW, Math.max(LEAST_ROW, Math.floor(free / Math.max(1, shown))));
    /** @type {Line[]} */
    this.lines = [];
    /**
     * The line of each rank: that of its group where the group is folded.
     * @type {Map<number, number>}
     */
    this.ofRank = new Map();
    this.height = 0;
    for (const { group, rows: members } of groups) {
      const isFolded = Boolean(grouping) && folded.has(group);
      if (grouping) this._add(null, group, isFolded, HEADING);
      for (const row of members) {
        if (!isFolded) this._add(row, group, false, this.rowHeight);
        this.ofRank.set(row.rank, this.lines.length - 1);
      }
    }
  }

  /** @param {Row | null} row @param {number} group @param {boolean} folded @param {number} high */
  _add(row, group, folded, high) {
    this.lines.push({ row, group, folded, top: this.height, high });
    this.height += high;
  }

  /**
   * Returns the lines that meet [top, bottom), as a first and a last number.
   * @param {number} top
   * @param {number} bottom
   */
  between(top, bottom) {
    return {
      first: this.numberAt(top),
      last: Math.min(this.lines.length, this.numberAt(bottom - 1) + 1),
    };
  }

  /**
   * Returns the line at a height, null below the last one.
   * @param {number} y
   * @returns {Line | null}
   */
  at(y) {
    return y < 0 || y >= this.height ? null : this.lines[this.numberAt(y)];
  }

  /** Returns the number of the line at a height, the nearest one outside. @param {number} y */
  numberAt(y) {
    let low = 0;
    let high = Math.max(0, this.lines.length - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lines[middle].top <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Returns the line that shows a rank. @param {number} rank @returns {Line | null} */
  of(rank) {
    return this.lines[this.ofRank.get(rank) ?? -1] ?? null;
  }

  /**
   * Returns from where to where neighbouring lines show any of `ranks`; headings between them are
   * bridged.
   * @param {number[]} ranks
   * @returns {{top: number, bottom: number}[]}
   */
  stretches(ranks) {
    const chosen = new Set(ranks.map((rank) => this.ofRank.get(rank)));
    /** @type {{top: number, bottom: number}[]} */
    const found = [];
    let isOpen = false;
    this.lines.forEach(({ row, folded, top, high }, line) => {
      if (!chosen.has(line)) isOpen &&= !row && !folded;
      else if (isOpen) found[found.length - 1].bottom = top + high;
      else isOpen = found.push({ top, bottom: top + high }) > 0;
    });
    return found;
  }

  /**
   * Returns the rank that stands `by` rows below another; itself at the ends.
   * @param {number} rank
   * @param {number} by
   */
  beside(rank, by) {
    const start = this.ofRank.get(rank);
    if (start === undefined) return rank;
    let at = start + by;
    while (this.lines[at] && !this.lines[at].row) at += by;
    return this.lines[at]?.row?.rank ?? rank;
  }

  /**
   * Returns the ranks of the lines in [top, bottom], those of folded groups included.
   * @param {number} top
   * @param {number} bottom
   * @returns {number[]}
   */
  ranksBetween(top, bottom) {
    const { first, last } = this.between(Math.max(0, top), Math.max(1, bottom));
    const found = [];
    for (const [rank, line] of this.ofRank) if (line >= first && line < last) found.push(rank);
    return found.sort((one, other) => one - other);
  }
}

/** Returns the groups with their rows, by number. @param {Row[]} rows @param {Grouping} grouping */
function grouped(rows, { of }) {
  /** @type {Map<number, Row[]>} */
  const groups = new Map();
  rows.forEach((row, i) => {
    const members = groups.get(of[i]);
    if (members) members.push(row);
    else groups.set(of[i], [row]);
  });
  return [...groups]
    .map(([group, members]) => ({ group, rows: members }))
    .sort((one, other) => one.group - other.group);
}
