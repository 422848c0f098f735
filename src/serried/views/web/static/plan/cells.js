// The cells of a matrix of traffic: where they stand in a picture, and how strongly each is filled.

/**
 * @typedef {object} MatrixAnswer  the server's document of the matrix
 * @property {string} verdict
 * @property {"rank" | "node" | "nodes"} unit  what a row stands for
 * @property {number} width  how many of these
 * @property {number} rows
 * @property {number[]} sent  bytes, row by row
 * @property {number} most
 */
/** @typedef {{row: number, column: number}} Cell */

const EDGE = 36;
const BELOW = 44;

/** Returns where the cells stand in a picture. @param {{rows: number}} matrix */
export function gridOf({ rows }, /** @type {{width: number, height: number}} */ size) {
  const room = Math.min(size.width - EDGE - 12, size.height - EDGE - BELOW);
  const cell = Math.max(1, room / rows);
  return { cell, left: EDGE, top: EDGE - 12, side: cell * rows };
}

/**
 * Returns the cell at a point, null beside the matrix.
 * @param {{rows: number}} matrix
 * @param {{width: number, height: number}} size
 * @param {{x: number, y: number}} point
 * @returns {Cell | null}
 */
export function cellAt(matrix, size, { x, y }) {
  const { cell, left, top } = gridOf(matrix, size);
  const [column, row] = [Math.floor((x - left) / cell), Math.floor((y - top) / cell)];
  const isInside = [row, column].every((at) => at >= 0 && at < matrix.rows);
  return isInside ? { row, column } : null;
}

/**
 * Returns how strongly a cell is filled: its share of the most, by the square root, so that little
 * can be told from nothing; the scale says so.
 * @param {number} bytes
 * @param {number} most
 */
export function shareOf(bytes, most) {
  return bytes > 0 ? Math.max(0.08, Math.sqrt(bytes / most)) : 0;
}
