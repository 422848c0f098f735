import assert from "node:assert/strict";
import { test } from "node:test";

import { cellAt, gridOf, shareOf } from "../../../src/serried/views/web/static/plan/cells.js";

const SIZE = { width: 400, height: 400 };

test("a matrix is square and stays within its picture", () => {
  const { cell, left, side, top } = gridOf({ rows: 16 }, SIZE);
  assert.equal(side, 16 * cell);
  assert.ok(left + side <= SIZE.width && top + side <= SIZE.height);
});

test("the middle of a cell is that cell, and beside the matrix is none", () => {
  const { cell, left, top } = gridOf({ rows: 16 }, SIZE);
  const point = { x: left + 3.5 * cell, y: top + 7.5 * cell };
  assert.deepEqual(cellAt({ rows: 16 }, SIZE, point), { row: 7, column: 3 });
  assert.equal(cellAt({ rows: 16 }, SIZE, { x: 2, y: 2 }), null);
});

test("nothing is left empty and little is told from nothing", () => {
  assert.equal(shareOf(0, 100), 0);
  assert.ok(shareOf(0.001, 100) >= 0.08);
  assert.equal(shareOf(100, 100), 1);
});
