// Where ranks stand on the map: cells in items, items in larger items, rank order throughout.
//
//   stage 0  ┌ node 0  0 1 2 3 ┐ ┌ node 1  8 …      a level is one kind of item: stages, nodes,
//            └         4 5 6 7 ┘ └                  cells; each says its place among its siblings
//   stage 1  ┌ node 2 …
//
// Cells are one unit high and `aspect` wide, so that the whole fills a frame; items run in reading
// order, and the last one may be part empty.

/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/**
 * @typedef {object} Level
 * @property {string} name       node, stage, band, domain, cell; of a cube block, row, column
 * @property {{axis: string, size: number}[]} [axes]  whose places number it, the slowest first
 * @property {Int32Array} place  of each rank: where the item that holds it stands in the one around
 * @property {number} count      places at most
 * @property {number} columns    0 for as many as fit best
 * @property {number[]} [choices]  the numbers of columns to choose from, where not any will do
 * @property {number} gap        pixels between items, as the whole is shown
 * @property {number} left       pixels that names take at the left of an item
 * @property {number} top        pixels that names take above
 * @property {number} pad        pixels around what it holds
 * @property {boolean} [isSmall]  whether an item holds a few cells only, as a node does
 * @property {number[]} [rooms]  places of what each holds where they differ, by number
 */
/**
 * @typedef {object} Place  a level as it is laid out, in units
 * @property {number} columns
 * @property {number} gap
 * @property {number} left
 * @property {number} top
 * @property {number} pad
 * @property {number} width
 * @property {number} height
 */

const LEAST_ASPECT = 0.8;
const MOST_ASPECT = 2.1;
/** What an even last row is worth: a little smaller is better than a ragged end. */
const EVEN = 1.1;
/** What surrounds a few cells, in units, so that it never outweighs them. */
const MOST_NAME = 0.7;
const LEAST_NAME = 0.22;
const MOST_GAP = 0.28;
const MOST_PAD = 0.14;
/** Pixels of a cell below which the names of small items would be too small to read. */
const NAMED_FROM = 14;
const TRIED = 48;
const ROUNDS = 4;

/** Places ranks in cells. */
export class Nest {
  /**
   * @param {Level[]} levels  the outermost first, cells last
   * @param {{width: number, height: number}} frame  pixels to fill
   */
  constructor(levels, frame) {
    this.levels = levels;
    this.aspect = 1;
    /** @type {Place[]} */
    this.places = levels.map((level) => ({ ...level, width: 1, height: 1 }));
    this._fit(frame);
    /** Where columns, and rows, of cells begin. */
    this.x = this._edges("columns");
    this.y = this._edges("rows");
    /** The column and the row of cells that each rank stands in. */
    this.columnOf = new Int32Array(this.worldSize);
    this.rowOf = new Int32Array(this.worldSize);
    this.rankIn = new Int32Array(this.numItems(this.cells)).fill(-1);
    this._locate();
  }

  get worldSize() {
    return this.levels[0].place.length;
  }
  get width() {
    return spanOf(this.levels[0].count, this.places[0]).width;
  }
  get height() {
    return spanOf(this.levels[0].count, this.places[0]).height;
  }

  /** The level of cells. */
  get cells() {
    return this.levels.length - 1;
  }

  /**
   * Returns pixels per unit when all of the nest fills `frame`.
   * @param {{width: number, height: number}} frame
   */
  fitScale({ width, height }) {
    return Math.min(width / this.width, height / this.height);
  }

  /** Returns how many items a level has places for. @param {number} level */
  numItems(level) {
    return this.levels.slice(0, level + 1).reduce((all, { count }) => all * count, 1);
  }

  /** Returns the item of a level that holds a rank. @param {number} level @param {number} rank */
  itemOf(level, rank) {
    let item = 0;
    for (let i = 0; i <= level; i++)
      item = item * this.levels[i].count + this.levels[i].place[rank];
    return item;
  }

  /** Returns the outline of an item. @param {number} level @param {number} item @returns {Box} */
  box(level, item) {
    const { width, height, left, top, pad } = this.places[level];
    let [x, y, rest] = [0, 0, item];
    for (let i = level; i >= 0; i--) {
      const around = this.places[i];
      const place = rest % this.levels[i].count;
      rest = (rest - place) / this.levels[i].count;
      x += (place % around.columns) * (around.width + around.gap);
      y += Math.floor(place / around.columns) * (around.height + around.gap);
      if (i === level) continue;
      x += around.left + around.pad;
      y += around.top + around.pad;
    }
    const room = this.levels[level].rooms?.[item];
    if (room === undefined) return { x, y, width, height };
    const own = spanOf(room, this.places[level + 1]);
    return { x, y, width: own.width + left + 2 * pad, height: own.height + top + 2 * pad };
  }

  /**
   * Returns the items of a level that lie in a view, and none of those around that do not.
   * @param {number} level
   * @param {{x: number, y: number, right: number, bottom: number}} view  in units
   */
  itemsIn(level, view) {
    /** @type {number[]} */
    const found = [];
    const look = (/** @type {number} */ i, /** @type {number} */ around, x = 0, y = 0) => {
      const { columns, gap, width, height, left, top, pad } = this.places[i];
      const { count } = this.levels[i];
      const [across, down] = [width + gap, height + gap];
      const lastRow = Math.min(
        Math.ceil(count / columns) - 1,
        Math.floor((view.bottom - y) / down),
      );
      const last = Math.min(columns - 1, Math.floor((view.right - x) / across));
      for (let row = Math.max(0, Math.ceil((view.y - y - height) / down)); row <= lastRow; row++)
        for (
          let column = Math.max(0, Math.ceil((view.x - x - width) / across));
          column <= last && row * columns + column < count;
          column++
        ) {
          const item = around * count + row * columns + column;
          if (i === level) found.push(item);
          else look(i + 1, item, x + column * across + left + pad, y + row * down + top + pad);
        }
    };
    look(0, 0);
    return found;
  }

  /** Returns the left edge of a rank's cell. @param {number} rank */
  cellX(rank) {
    return this.x[this.columnOf[rank]];
  }

  /** Returns the upper edge of a rank's cell. @param {number} rank */
  cellY(rank) {
    return this.y[this.rowOf[rank]];
  }

  /**
   * Returns the rank whose cell holds a point, -1 where there is none.
   * @param {number} x
   * @param {number} y
   */
  rankAt(x, y) {
    let item = 0;
    for (let i = 0; i < this.levels.length; i++) {
      const { columns, gap, width, height, left, top, pad } = this.places[i];
      const column = Math.floor(x / (width + gap));
      const row = Math.floor(y / (height + gap));
      if (column < 0 || row < 0 || column >= columns) return -1;
      const place = row * columns + column;
      if (place >= this.levels[i].count) return -1;
      item = item * this.levels[i].count + place;
      x -= column * (width + gap);
      y -= row * (height + gap);
      if (x > width || y > height) return -1;
      x -= left + pad;
      y -= top + pad;
    }
    return this.rankIn[item];
  }

  /**
   * Returns the next rank in a direction, or `rank` itself at the edge of the map.
   * @param {number} rank
   * @param {number} dx
   * @param {number} dy one of -1, 0, 1
   */
  neighbour(rank, dx, dy) {
    const x = this.cellX(rank) + this.aspect / 2;
    const y = this.cellY(rank) + 0.5;
    const { width, height } = this.places[0];
    const reach = 2 * (width + height);
    const step = Math.min(0.5, this.aspect / 2);
    for (let away = step; away < reach; away += step) {
      const found = this.rankAt(x + dx * away, y + dy * away);
      if (found >= 0 && found !== rank) return found;
    }
    return rank;
  }

  /**
   * Returns the rank whose cell's middle is nearest to a point.
   * @param {number} x
   * @param {number} y
   */
  nearest(x, y) {
    const found = this.rankAt(x, y);
    if (found >= 0) return found;
    let nearest = -1;
    let least = Infinity;
    // Cells within a growing square, then once more as far as the nearest of those is away.
    for (let far = 1, isLast = false; !isLast; far *= 2) {
      isLast = nearest >= 0 || far > this.width + this.height + Math.abs(x) + Math.abs(y);
      const side = nearest >= 0 ? least : far;
      const view = { x: x - side, y: y - side, right: x + side, bottom: y + side };
      for (const item of this.itemsIn(this.cells, view)) {
        const rank = this.rankIn[item];
        if (rank < 0) continue;
        const away =
          Math.abs(this.cellX(rank) + this.aspect / 2 - x) + Math.abs(this.cellY(rank) + 0.5 - y);
        if (away < least) [nearest, least] = [rank, away];
      }
    }
    return nearest;
  }

  /**
   * Chooses columns and the width of cells so that these come out largest. Names and gaps are of so
   * many pixels, so that what they take of a unit depends on the outcome: it is found by rounds.
   * @param {{width: number, height: number}} frame
   */
  _fit(frame) {
    const free = this.levels.flatMap(({ columns }, i) => (columns ? [] : [i]));
    let scale = Math.sqrt((frame.width * frame.height) / this.worldSize);
    let best = { score: 0, columns: free.map(() => 1), aspect: 1, scale };
    for (let round = 0; round < ROUNDS; round++) {
      this._pixels(scale);
      best = { ...best, score: 0 };
      this._try(free, [], frame, best);
      free.forEach((i, n) => (this.places[i].columns = best.columns[n]));
      scale = (scale + best.scale) / 2;
    }
    this.aspect = best.aspect;
    this._measure();
  }

  /** Takes gaps and names in units of so many pixels. @param {number} scale */
  _pixels(scale) {
    this.levels.forEach(({ columns, gap, left, top, pad, isSmall }, i) => {
      const units = (/** @type {number} */ pixels) => pixels / scale;
      const name = isSmall ? nameUnits(top, scale) : units(top);
      Object.assign(this.places[i], {
        columns: columns || this.places[i].columns || 1,
        gap: i === this.cells ? 0 : isSmall ? between(units(gap), units(1), MOST_GAP) : units(gap),
        left: units(left),
        top: name,
        pad: isSmall ? Math.min(units(pad), MOST_PAD) : units(pad),
      });
    });
  }

  /**
   * @param {number[]} free
   * @param {number[]} chosen
   * @param {{width: number, height: number}} frame
   * @param {{score: number, columns: number[], aspect: number, scale: number}} best
   */
  _try(free, chosen, frame, best) {
    if (chosen.length < free.length) {
      const { choices, count } = this.levels[free[chosen.length]];
      for (const columns of choices ?? columnsTried(count))
        this._try(free, [...chosen, columns], frame, best);
      return;
    }
    free.forEach((i, n) => (this.places[i].columns = chosen[n]));
    this.aspect = 0;
    this._measure();
    const gaps = this.width;
    const high = this.height;
    const cells = this.places.reduce((all, { columns }) => all * columns, 1);
    const scale = Math.min(frame.height / high, frame.width / (LEAST_ASPECT * cells + gaps));
    const wide = (frame.width / scale - gaps) / cells;
    const aspect = Math.min(MOST_ASPECT, Math.max(LEAST_ASPECT, wide));
    const even = free.every((i, n) => this.levels[i].count % chosen[n] === 0);
    const score = scale * scale * aspect * (even ? EVEN : 1);
    if (score > best.score * 1.0001) Object.assign(best, { score, columns: chosen, aspect, scale });
  }

  /** Takes sizes from the cells outwards. */
  _measure() {
    let inner = { width: this.aspect, height: 1 };
    for (let i = this.cells; i >= 0; i--) {
      Object.assign(this.places[i], inner);
      const { left, top, pad } = this.places[i - 1] ?? { left: 0, top: 0, pad: 0 };
      const span = spanOf(this.levels[i].count, this.places[i]);
      inner = { width: span.width + left + 2 * pad, height: span.height + top + 2 * pad };
    }
  }

  /** Finds where each rank stands, and the rank in each place. */
  _locate() {
    const world = this.worldSize;
    const item = new Int32Array(world);
    this.levels.forEach(({ place, count }, i) => {
      const { columns } = this.places[i];
      const rows = Math.ceil(count / columns);
      for (let rank = 0; rank < world; rank++) {
        const at = place[rank];
        this.columnOf[rank] = this.columnOf[rank] * columns + (at % columns);
        this.rowOf[rank] = this.rowOf[rank] * rows + Math.floor(at / columns);
        item[rank] = item[rank] * count + at;
      }
    });
    for (let rank = 0; rank < world; rank++) this.rankIn[item[rank]] = rank;
  }

  /**
   * Returns where each column, or row, of cells begins.
   * @param {"columns" | "rows"} along
   */
  _edges(along) {
    let edges = [0];
    this.places.forEach((place, i) => {
      const isAcross = along === "columns";
      const number = isAcross ? place.columns : Math.ceil(this.levels[i].count / place.columns);
      const pitch = (isAcross ? place.width : place.height) + place.gap;
      const inset = i < this.cells ? place.pad + (isAcross ? place.left : place.top) : 0;
      const next = [];
      for (const edge of edges)
        for (let n = 0; n < number; n++) next.push(edge + n * pitch + inset);
      edges = next;
    });
    return Float64Array.from(edges);
  }
}

/** @param {number} value @param {number} least @param {number} most */
function between(value, least, most) {
  return Math.max(least, Math.min(value, most));
}

/**
 * Returns the units that the name of a small item takes.
 * @param {number} pixels
 * @param {number} scale
 */
function nameUnits(pixels, scale) {
  if (!pixels) return 0;
  return scale < NAMED_FROM ? LEAST_NAME : Math.min(pixels / scale, MOST_NAME);
}

/**
 * Returns how large `count` items are side by side.
 * @param {number} count
 * @param {Place} place
 */
function spanOf(count, { columns, gap, width, height }) {
  const rows = Math.ceil(count / columns);
  return {
    width: Math.min(columns, count) * (width + gap) - gap,
    height: rows * (height + gap) - gap,
  };
}

/**
 * Returns the numbers of columns that are worth trying: all of few, of many those that leave no gap
 * and some between.
 * @param {number} count
 */
function columnsTried(count) {
  if (count <= TRIED) return Array.from({ length: count }, (_, i) => i + 1);
  /** @type {Set<number>} */
  const tried = new Set();
  for (let n = 1; n * n <= count; n++)
    if (count % n === 0) {
      tried.add(n);
      tried.add(count / n);
    }
  for (let n = 1; n < count; n *= 1.12) tried.add(Math.round(n));
  return [...tried];
}
