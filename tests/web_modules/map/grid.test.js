import assert from "node:assert/strict";
import { test } from "node:test";

import { Grid, nodeColumns } from "../../../src/serried/views/web/static/map/grid.js";

/** Nodes of `size` ranks, filled in order. */
function nodes(world, size, frame = { width: 900, height: 760 }) {
  const ranks = Array.from({ length: world }, (_, rank) => rank);
  const node = Int32Array.from(ranks, (rank) => Math.floor(rank / size));
  const local = Int32Array.from(ranks, (rank) => rank % size);
  return new Grid(node, local, frame, { capacity: Math.min(world, size) });
}

for (const [world, size] of [
  [1, 8],
  [16, 8],
  [16, 4],
  [13, 5],
  [1024, 8],
  [7, 72],
  [16384, 8],
]) {
  test(`${world} ranks on nodes of ${size}: the middle of a rank's cell is that rank`, () => {
    const grid = nodes(world, size);
    for (let rank = 0; rank < world; rank++) {
      assert.equal(grid.rankAt(grid.cellX(rank) + 0.5, grid.cellY(rank) + 0.5), rank);
    }
  });
}

test("cells lie inside their node's box, and boxes inside the plane", () => {
  const grid = nodes(24, 8);
  for (let rank = 0; rank < 24; rank++) {
    const box = grid.box(grid.boxOf[rank]);
    assert.ok(grid.cellX(rank) >= box.x && grid.cellX(rank) + 1 <= box.x + box.width);
    assert.ok(
      grid.cellY(rank) >= box.y + grid.header - 1e-9 && grid.cellY(rank) + 1 <= box.y + box.height,
    );
    assert.ok(box.x + box.width <= grid.width + 1e-9 && box.y + box.height <= grid.height + 1e-9);
  }
});

test("gaps, headers and the outside hold no rank", () => {
  const grid = nodes(16, 8);
  const box = grid.box(0);
  assert.equal(grid.rankAt(box.x + 0.5, box.y + grid.header / 2), -1);
  assert.equal(grid.rankAt(-0.1, 1), -1);
  assert.equal(grid.rankAt(1, grid.height + 5), -1);
});

test("16 ranks of 2 nodes read as four rows of four, as the group arithmetic is drawn", () => {
  const grid = nodes(16, 8);
  assert.equal(grid.columns, 4);
  assert.equal(grid.boxesPerRow, 1);
  const rows = new Set(Array.from({ length: 16 }, (_, rank) => grid.cellY(rank)));
  assert.equal(rows.size, 4);
});

test("a ragged last node leaves its empty places empty", () => {
  const grid = nodes(10, 8);
  const last = grid.box(1);
  assert.equal(grid.rankAt(last.x + last.width - 0.3, last.y + last.height - 0.3), -1);
});

test("arrow keys reach every rank and stop at the edges", () => {
  const grid = nodes(32, 8);
  assert.equal(grid.neighbour(0, 1, 0), 1);
  assert.equal(grid.neighbour(0, 0, 1), 4);
  assert.equal(grid.neighbour(0, -1, 0), 0);
  const seen = new Set([0]);
  for (const rank of seen) {
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
      [-1, 0],
      [0, -1],
    ])
      seen.add(grid.neighbour(rank, dx, dy));
  }
  assert.equal(seen.size, 32);
});

test("arranged by stage, a stage is one box and boxes stand below one another", () => {
  const stage = Int32Array.from({ length: 16 }, (_, rank) => Math.floor(rank / 4));
  const place = Int32Array.from({ length: 16 }, (_, rank) => rank % 4);
  const grid = new Grid(stage, place, { width: 700, height: 700 }, { stacked: true });
  assert.equal(grid.boxesPerRow, 1);
  assert.equal(grid.numBoxes, 4);
  assert.deepEqual(
    [0, 1, 2, 3].map((rank) => grid.cellY(rank)),
    Array(4).fill(grid.cellY(0)),
  );
});

test("a node's cells are as wide as they are rows of a machine", () => {
  assert.deepEqual([1, 2, 4, 6, 8, 16, 72, 7].map(nodeColumns), [1, 2, 2, 3, 4, 4, 9, 3]);
});

test("a node has room for its own GPUs where nodes differ", () => {
  const node = Int32Array.from([0, 0, 0, 0, 1]);
  const local = Int32Array.from([0, 1, 2, 3, 0]);
  const grid = new Grid(node, local, { width: 900, height: 760 }, { capacity: 4, rooms: [4, 1] });
  const [four, one] = [grid.box(0), grid.box(1)];
  assert.ok(
    Math.abs(four.width - one.width - 1) < 1e-9 && Math.abs(four.height - one.height - 1) < 1e-9,
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((rank) => grid.rankAt(grid.cellX(rank) + 0.5, grid.cellY(rank) + 0.5)),
    [0, 1, 2, 3, 4],
  );
});
