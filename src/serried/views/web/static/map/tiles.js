// Parts of the map that stand for all the ranks in them, so that what is drawn between them is wide
// enough to be seen: items, squares of items, or the items around them.

/** @typedef {import("./nest.js").Nest} Nest */
/** @typedef {import("./nest.js").Box} Box */
/**
 * @typedef {object} Tiles
 * @property {string} key     what tells them from others
 * @property {boolean} areItems  whether each is one item that holds cells
 * @property {number} count   how many items there are
 * @property {(rank: number) => number} of
 * @property {(tile: number) => Box} box  in units
 */

/**
 * Returns the smallest tiles that are at least so many units wide and high.
 * @param {Nest} nest
 * @param {number} least
 * @returns {Tiles}
 */
export function tilesOf(nest, least) {
  const innermost = Math.max(
    0,
    nest.levels.findLastIndex(({ name }) => !["cell", "row", "column"].includes(name)),
  );
  for (let level = innermost; level > 0; level--) {
    const { columns, width, height } = nest.places[level];
    const rows = Math.ceil(nest.levels[level].count / columns);
    for (let side = 1; side === 1 || side < Math.max(columns, rows); side *= 2)
      if (side * Math.min(width, height) >= least)
        return squares(nest, level, side, innermost === level && side === 1);
  }
  const { width, height } = nest.places[0];
  let side = 1;
  while (side * Math.min(width, height) < least && side < 4096) side *= 2;
  return squares(nest, 0, side, innermost === 0 && side === 1);
}

/**
 * Returns squares of `side` items a side of a level, within the item around them.
 * @param {Nest} nest
 * @param {number} level
 * @param {number} side
 * @param {boolean} areItems
 * @returns {Tiles}
 */
function squares(nest, level, side, areItems) {
  const { place, count } = nest.levels[level];
  const { columns } = nest.places[level];
  const rows = Math.ceil(count / columns);
  const [across, down] = [Math.ceil(columns / side), Math.ceil(rows / side)];
  const around = (/** @type {number} */ rank) => (level ? nest.itemOf(level - 1, rank) : 0);
  return {
    key: `${level} ${side} ${columns} ${count}`,
    areItems,
    count: nest.numItems(level),
    of: (rank) => {
      const column = Math.floor((place[rank] % columns) / side);
      const row = Math.floor(Math.floor(place[rank] / columns) / side);
      return (around(rank) * down + row) * across + column;
    },
    box: (tile) => {
      const column = (tile % across) * side;
      const row = (Math.floor(tile / across) % down) * side;
      const first = Math.floor(tile / across / down) * count;
      const end = Math.min(count - 1, Math.min(columns, column + side) - 1 + row * columns);
      const last = Math.min(rows, row + side) - 1;
      const one = nest.box(level, first + row * columns + column);
      const right = nest.box(level, first + end);
      const low = nest.box(level, first + Math.min(count - 1, last * columns + column));
      return {
        x: one.x,
        y: one.y,
        width: right.x + right.width - one.x,
        height: low.y + low.height - one.y,
      };
    },
  };
}
