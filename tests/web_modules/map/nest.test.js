import assert from "node:assert/strict";
import { test } from "node:test";

import {
  byAxes,
  byNode,
  byStage,
  nodeColumns,
} from "../../../src/serried/views/web/static/map/arrangement.js";
import { Nest } from "../../../src/serried/views/web/static/map/nest.js";
import { sceneOf } from "./scenes.js";

const FRAME = { width: 900, height: 760 };
const WIDE = { width: 1600, height: 800 };
const nodes = (world, size, frame = FRAME) => new Nest(byNode(sceneOf({ dp: world }, size)), frame);

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
    const nest = nodes(world, size);
    for (let rank = 0; rank < world; rank++) {
      const [x, y] = [nest.cellX(rank) + nest.aspect / 2, nest.cellY(rank) + 0.5];
      assert.equal(nest.rankAt(x, y), rank);
    }
  });
}

for (const frame of [FRAME, WIDE]) {
  for (const world of [8, 16, 64, 256, 1024, 16384])
    test(`${world} ranks leave little of ${frame.width} pixels empty at the sides`, () => {
      const nest = new Nest(byNode(sceneOf({ pp: 4, dp: world / 8, tp: 2 })), frame);
      const empty = frame.width - nest.width * nest.fitScale(frame);
      assert.ok(empty / 2 < 75, `${empty / 2} a side`);
    });
}

test("cells lie inside their node's box, and boxes inside the plane", () => {
  const nest = nodes(24, 8);
  for (let rank = 0; rank < 24; rank++) {
    const box = nest.box(0, nest.itemOf(0, rank));
    assert.ok(nest.cellX(rank) >= box.x);
    assert.ok(nest.cellX(rank) + nest.aspect <= box.x + box.width + 1e-9);
    assert.ok(nest.cellY(rank) >= box.y + nest.places[0].top - 1e-9);
    assert.ok(nest.cellY(rank) + 1 <= box.y + box.height + 1e-9);
    assert.ok(box.x + box.width <= nest.width + 1e-9 && box.y + box.height <= nest.height + 1e-9);
  }
});

test("the items in a view are those whose boxes reach into it", () => {
  const scene = sceneOf({ pp: 4, dp: 17, tp: 2 });
  for (const levels of [byNode(scene, 8), byStage(scene, 8)]) {
    const nest = new Nest(levels, FRAME);
    for (const [x, y, size] of [
      [0, 0, 1000],
      [-5, -5, 4],
      [3.2, 2.9, 3],
      [8, 1, 0.1],
      [nest.width - 1, nest.height - 1, 9],
    ]) {
      const view = { x, y, right: x + size, bottom: y + size };
      for (let level = 0; level <= nest.cells; level++) {
        const reaching = Array.from({ length: nest.numItems(level) }, (_, item) => item).filter(
          (item) => {
            const box = nest.box(level, item);
            const isAcross = box.x <= view.right && box.x + box.width >= view.x;
            return isAcross && box.y <= view.bottom && box.y + box.height >= view.y;
          },
        );
        assert.deepEqual(nest.itemsIn(level, view), reaching);
      }
    }
  }
});

test("the nearest rank to a point is the one whose middle is least away", () => {
  const nest = nodes(37, 8);
  for (let i = 0; i < 60; i++) {
    const [x, y] = [nest.width * (1.6 * ((i * 0.618) % 1) - 0.3), (nest.height * i) / 50 - 2];
    const away = (rank) =>
      Math.abs(nest.cellX(rank) + nest.aspect / 2 - x) + Math.abs(nest.cellY(rank) + 0.5 - y);
    const least = Math.min(...Array.from({ length: 37 }, (_, rank) => away(rank)));
    if (nest.rankAt(x, y) < 0) assert.equal(away(nest.nearest(x, y)), least);
  }
});

test("gaps, names and the outside hold no rank", () => {
  const nest = nodes(16, 8);
  const box = nest.box(0, 0);
  assert.equal(nest.rankAt(box.x + 0.5, box.y + nest.places[0].top / 2), -1);
  assert.equal(nest.rankAt(-0.1, 1), -1);
  assert.equal(nest.rankAt(1, nest.height + 5), -1);
});

test("16 ranks of 2 nodes read as four rows of four, as the group arithmetic is drawn", () => {
  const nest = nodes(16, 8);
  assert.equal(new Set(nest.rowOf).size, 4);
  assert.equal(new Set(nest.columnOf).size, 4);
});

test("a ragged last node leaves its empty places empty", () => {
  const nest = nodes(10, 8);
  const last = nest.box(0, 1);
  assert.equal(nest.rankAt(last.x + last.width - 0.3, last.y + last.height - 0.3), -1);
});

test("arrow keys reach every rank and stop at the edges", () => {
  const nest = nodes(32, 8);
  assert.equal(nest.neighbour(0, 1, 0), 1);
  assert.equal(nest.neighbour(0, 0, 1), 4);
  assert.equal(nest.neighbour(0, -1, 0), 0);
  const seen = new Set([0]);
  for (const rank of seen)
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
      [-1, 0],
      [0, -1],
    ])
      seen.add(nest.neighbour(rank, dx, dy));
  assert.equal(seen.size, 32);
});

test("arranged by stage, a stage is one box and boxes stand below one another", () => {
  const nest = new Nest(byStage(sceneOf({ pp: 4, dp: 4 })), { width: 700, height: 700 });
  assert.equal(nest.places[0].columns, 1);
  assert.equal(nest.numItems(0), 4);
  assert.deepEqual(
    [...nest.x],
    [...nest.x].toSorted((a, b) => a - b),
  );
  for (let rank = 0; rank < 16; rank++) assert.equal(nest.itemOf(0, rank), rank >> 2);
});

test("in a cube ranks of one place along an axis share their row, column or block", () => {
  const scene = sceneOf({ pp: 4, dp: 3, tp: 2 });
  const roles = { rows: ["pp"], columns: ["tp"], blocks: ["dp"] };
  const nest = new Nest(byAxes(scene, { mesh: "dense", roles }), FRAME);
  for (let rank = 0; rank < 24; rank++) {
    const column = [...nest.x].indexOf(nest.cellX(rank)) % 2;
    assert.equal(column, scene.along("dense", "tp")[rank]);
    assert.equal(nest.itemOf(0, rank), scene.along("dense", "dp")[rank]);
  }
  assert.equal(
    new Set(nest.rowOf.filter((_, rank) => scene.stage[rank] === 2)).size,
    nest.y.length / 4,
  );
});

test("a node's cells are as wide as they are rows of a machine", () => {
  assert.deepEqual([1, 2, 4, 6, 8, 16, 72, 7].map(nodeColumns), [1, 2, 2, 3, 4, 4, 9, 3]);
});

test("a node has room for its own GPUs where nodes differ", () => {
  const scene = sceneOf({ dp: 5 }, 4);
  Object.assign(scene.job, { node_gpus: [4, 1] });
  const nest = new Nest(byNode(scene), FRAME);
  const [four, one] = [nest.box(0, 0), nest.box(0, 1)];
  assert.ok(Math.abs(four.width - one.width - nest.aspect) < 1e-9);
  assert.ok(Math.abs(four.height - one.height - 1) < 1e-9);
});

test("the rank nearest to a point beside all cells is found", () => {
  const nest = nodes(16, 8);
  assert.equal(nest.nearest(-3, -3), 0);
  assert.equal(nest.nearest(nest.width + 3, nest.height + 3), 15);
});
