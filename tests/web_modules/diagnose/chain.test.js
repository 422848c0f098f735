import assert from "node:assert/strict";
import { test } from "node:test";

import { placesOf, way } from "../../../src/serried/views/web/static/diagnose/chain.js";

const box = (level) => ({ ranks: [0], named: "rank 0", what: [], waits_for: [], level });

test("boxes of one level stand below one another, further levels further right", () => {
  const [root, first, second, far] = placesOf([box(0), box(1), box(1), box(2)], 13.5);
  assert.equal(root.x, 0);
  assert.equal(first.x, second.x);
  assert.ok(root.x < first.x && first.x < far.x);
  assert.ok(first.y < second.y);
  assert.equal(far.y, 0);
});

test("whoever waits for the next column is led straight there, however wide boxes are", () => {
  for (let wide = 13.5; wide < 28; wide += 0.1) {
    const boxes = [0, 1, 2, 3].map((level) => ({ level }));
    const places = placesOf(/** @type {any} */ (boxes), wide);
    for (const at of [1, 2, 3]) {
      const { y } = places[at - 1];
      assert.ok(
        way(places[at], places[at - 1], wide).endsWith(` ${y + 2.2}`),
        "it ends at the middle of a side",
      );
    }
  }
});
