// Where ranks stand on the map: cells of one unit in boxes, boxes in rows, rank order throughout.
//
//   node 0  0 1 2 3      A box is a node, or a stage when the map is arranged by stage.
//           4 5 6 7      Its cells run in reading order; the last box may be part empty.

const PADDING = 0.14;
const GAP = 0.22;

/** @typedef {{x: number, y: number, width: number, height: number}} Box */

/** Places ranks in cells of one unit. */
export class Grid {
  /**
   * @param {Int32Array} boxOf    the box of each rank
   * @param {Int32Array} placeIn  its place within the box
   * @param {{width: number, height: number}} frame  pixels to fill
   * @param {{stacked?: boolean, capacity?: number, rooms?: number[]}} [options]
   *   stacked: one box per row; rooms: cells of each box where boxes differ, else empty
   */
  constructor(boxOf, placeIn, frame, { stacked = false, capacity = 0, rooms = [] } = {}) {
    this.rooms = rooms;
    this.boxOf = boxOf;
    this.placeIn = placeIn;
    this.numBoxes = boxOf.reduce((most, box) => Math.max(most, box + 1), 0);
    this.capacity = Math.max(
      capacity,
      placeIn.reduce((most, place) => Math.max(most, place + 1), 1),
    );
    this.columns = stacked ? 1 : nodeColumns(this.capacity);
    this.boxesPerRow = 1;
    this.header = 0.7;
    this._fit(frame, stacked);
    this.header = Math.min(0.7, Math.max(0.2, 17 / this.fitScale(frame)));
    this._fit(frame, stacked);
    this.rankIn = new Int32Array(this.numBoxes * this.capacity).fill(-1);
    boxOf.forEach((box, rank) => (this.rankIn[box * this.capacity + placeIn[rank]] = rank));
  }

  get rows() {
    return Math.ceil(this.capacity / this.columns);
  }
  get boxWidth() {
    return this.columns + 2 * PADDING;
  }
  get boxHeight() {
    return this.rows + this.header + PADDING;
  }
  get width() {
    return this.boxesPerRow * (this.boxWidth + GAP) - GAP;
  }
  get height() {
    return Math.ceil(this.numBoxes / this.boxesPerRow) * (this.boxHeight + GAP) - GAP;
  }

  /**
   * Returns pixels per unit when all of the grid fills `frame`.
   * @param {{width: number, height: number}} frame
   */
  fitScale({ width, height }) {
    return Math.min(width / this.width, height / this.height);
  }

  /**
   * Chooses columns so that cells come out largest.
   * @param {{width: number, height: number}} frame
   * @param {boolean} stacked
   */
  _fit(frame, stacked) {
    const field = stacked ? "columns" : "boxesPerRow";
    const most = stacked ? this.capacity : this.numBoxes;
    const even = (/** @type {number} */ n) => most % n === 0;
    let best = 1;
    let bestScale = 0;
    for (let n = 1; n <= most; n++) {
      this[field] = n;
      // A little smaller is better than a ragged last row.
      const scale = this.fitScale(frame) * (even(n) ? 1.08 : 1);
      if (scale > bestScale * 1.0001) [best, bestScale] = [n, scale];
    }
    this[field] = best;
  }

  /** Returns the outline of a box. @param {number} box @returns {Box} */
  box(box) {
    const room = this.rooms[box] ?? this.capacity;
    return {
      x: (box % this.boxesPerRow) * (this.boxWidth + GAP),
      y: Math.floor(box / this.boxesPerRow) * (this.boxHeight + GAP),
      width: Math.min(this.columns, room) + 2 * PADDING,
      height: Math.ceil(room / this.columns) + this.header + PADDING,
    };
  }

  /** Returns the left edge of a rank's cell. @param {number} rank */
  cellX(rank) {
    const column = this.boxOf[rank] % this.boxesPerRow;
    return column * (this.boxWidth + GAP) + PADDING + (this.placeIn[rank] % this.columns);
  }

  /** Returns the upper edge of a rank's cell. @param {number} rank */
  cellY(rank) {
    const row = Math.floor(this.boxOf[rank] / this.boxesPerRow);
    return (
      row * (this.boxHeight + GAP) + this.header + Math.floor(this.placeIn[rank] / this.columns)
    );
  }

  /**
   * Returns the rank whose cell holds a point, -1 where there is none.
   * @param {number} x
   * @param {number} y
   */
  rankAt(x, y) {
    const boxColumn = Math.floor(x / (this.boxWidth + GAP));
    const boxRow = Math.floor(y / (this.boxHeight + GAP));
    if (boxColumn < 0 || boxColumn >= this.boxesPerRow || boxRow < 0) return -1;
    const box = boxRow * this.boxesPerRow + boxColumn;
    const column = Math.floor(x - boxColumn * (this.boxWidth + GAP) - PADDING);
    const row = Math.floor(y - boxRow * (this.boxHeight + GAP) - this.header);
    if (box >= this.numBoxes || column < 0 || column >= this.columns || row < 0) return -1;
    const place = row * this.columns + column;
    return place < this.capacity ? this.rankIn[box * this.capacity + place] : -1;
  }

  /**
   * Returns the next rank in a direction, or `rank` itself at the edge of the map.
   * @param {number} rank
   * @param {number} dx
   * @param {number} dy one of -1, 0, 1
   */
  neighbour(rank, dx, dy) {
    const x = this.cellX(rank) + 0.5;
    const y = this.cellY(rank) + 0.5;
    const reach = this.boxWidth + this.boxHeight;
    for (let step = 0.5; step < reach; step += 0.5) {
      const found = this.rankAt(x + dx * step, y + dy * step);
      if (found >= 0 && found !== rank) return found;
    }
    return rank;
  }
}

/**
 * Returns the columns of a node's cells: 4 for 8 ranks, as two rows of a machine's GPUs.
 * @param {number} capacity
 */
export function nodeColumns(capacity) {
  const least = Math.ceil(Math.sqrt(capacity));
  for (let n = least; n <= 2 * least; n++) if (capacity % n === 0) return n;
  return least;
}
