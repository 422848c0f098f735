import assert from "node:assert/strict";
import { test } from "node:test";

import { slotsOf } from "../../../src/serried/views/web/static/map/slots.js";

test("a cell below 24 pixels has no room for marks, be there but one", () => {
  assert.equal(slotsOf(1, 23, 40, 0).areReadable, false);
  assert.equal(slotsOf(1, 24, 40, 0).areReadable, true);
});

test("of several marks each needs room to be told from the next", () => {
  assert.equal(slotsOf(3, 32, 32, 0).areReadable, false);
  assert.equal(slotsOf(3, 70, 70, 16).areReadable, true);
});

for (const count of [1, 2, 3, 4, 7])
  test(`${count} marks stand inside their cell, none over another`, () => {
    const [width, height, top] = [120, 90, 18];
    const { middle, radius } = slotsOf(count, width, height, top);
    const at = Array.from({ length: count }, (_, kind) => middle(kind));
    at.forEach(({ x, y }, kind) => {
      assert.ok(x - radius >= 0 && x + radius <= width);
      assert.ok(y - radius >= top - 1 && y + radius <= height);
      for (const other of at.slice(kind + 1))
        assert.ok(Math.hypot(other.x - x, other.y - y) >= 2 * radius);
    });
  });
