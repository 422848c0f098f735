// The slots that marks take in a rank's cell: as many columns as leave each the most room.

/**
 * @typedef {object} Slots  all in pixels
 * @property {number} radius  of a mark
 * @property {boolean} areReadable  whether each mark has room enough to be told from the next
 * @property {(kind: number) => {x: number, y: number}} middle  within the cell
 */

/** Pixels of a cell below which it shows one thing only. */
export const MARKS_FROM = 24;
const LEAST_SLOT = 20;
/** A mark fills this share of half its slot. */
const SHARE = 0.7;
const EDGE = 3;

/**
 * Returns where the marks of `count` kinds stand in a cell.
 * @param {number} count
 * @param {number} width
 * @param {number} height  in pixels
 * @param {number} top     pixels that its number takes
 * @returns {Slots}
 */
export function slotsOf(count, width, height, top) {
  let [columns, rows, side] = [1, 1, 0];
  for (let n = 1; n <= Math.max(1, count); n++) {
    const lines = Math.ceil(count / n) || 1;
    const room = Math.min((width - 2 * EDGE) / n, (height - EDGE - top) / lines);
    if (room > side * 1.001) [columns, rows, side] = [n, lines, room];
  }
  const wide = Math.min((width - 2 * EDGE) / columns, 1.35 * side);
  const high = (height - EDGE - top) / rows;
  return {
    radius: (SHARE * side) / 2,
    areReadable: Math.min(width, height) >= MARKS_FROM && (count <= 1 || side >= LEAST_SLOT),
    middle: (kind) => {
      const row = Math.floor(kind / columns);
      const inRow = Math.min(columns, count - row * columns);
      const x = width / 2 + ((kind % columns) - (inRow - 1) / 2) * wide;
      return { x, y: top + (row + 0.5) * high };
    },
  };
}
