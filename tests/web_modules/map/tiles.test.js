import assert from "node:assert/strict";
import { test } from "node:test";

import { byNode } from "../../../src/serried/views/web/static/map/arrangement.js";
import { Nest } from "../../../src/serried/views/web/static/map/nest.js";
import { tilesOf } from "../../../src/serried/views/web/static/map/tiles.js";
import { sceneOf } from "./scenes.js";

const FRAME = { width: 1100, height: 780 };
const nest = new Nest(byNode(sceneOf({ pp: 4, dp: 32, tp: 8 })), FRAME);

for (const least of [0, 3, 6, 12, 50, 1000])
  test(`tiles of at least ${least} units hold their ranks`, () => {
    const tiles = tilesOf(nest, least);
    for (let rank = 0; rank < nest.worldSize; rank += 7) {
      const { x, y, width, height } = tiles.box(tiles.of(rank));
      assert.ok(nest.cellX(rank) >= x && nest.cellX(rank) + nest.aspect <= x + width + 1e-6);
      assert.ok(nest.cellY(rank) >= y && nest.cellY(rank) + 1 <= y + height + 1e-6);
    }
  });

test("small tiles are nodes, larger ones hold several", () => {
  assert.equal(tilesOf(nest, 0).areItems, true);
  assert.equal(tilesOf(nest, 6).areItems, false);
  const count = (least) => new Set([...nest.columnOf.keys()].map(tilesOf(nest, least).of)).size;
  assert.ok(count(0) > count(6) && count(6) > count(12));
});
