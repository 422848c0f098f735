import assert from "node:assert/strict";
import { test } from "node:test";

import { HEAD, Stack } from "../../../../src/serried/views/web/static/schedule/model/stack.js";

test("blocks stand one under another, a row for every rank", () => {
  const stack = new Stack([4, 2], 800, true);
  const [first, second] = stack.blocks;
  assert.deepEqual([first.top, first.rows], [0, HEAD]);
  assert.equal(second.top, first.bottom);
  assert.equal(stack.rowTop(1, 1), second.rows + stack.row);
  assert.equal(stack.height, second.bottom);
});

test("what is at a height is the row that stands there", () => {
  const stack = new Stack([4, 2], 800, true);
  assert.equal(stack.at(10), null, "a head is no row");
  assert.deepEqual(stack.at(stack.rowTop(1, 1)), { block: 1, rank: 1, isStrip: false });
  assert.deepEqual(stack.at(stack.rowTop(0, 2) + stack.bar + 2), {
    block: 0,
    rank: 2,
    isStrip: true,
  });
  assert.equal(stack.at(stack.height + 5), null);
});

test("rows are as tall as the room allows, and never too low to read", () => {
  const rows = (count, height, withStrips = true) => new Stack([count], height, withStrips);
  assert.ok(rows(4, 400).height <= 400);
  assert.ok(rows(4, 2000).bar > rows(4, 200).bar);
  assert.ok(rows(64, 600).bar >= 13);
  assert.equal(rows(4, 400, false).strip, 0);
  assert.ok(rows(8, 400, false).bar > rows(8, 400).bar);
});

test("only the rows in view are named", () => {
  const stack = new Stack([64], 600, true);
  const { first, last } = stack.ranksBetween(0, stack.rowTop(0, 10) + 1, stack.rowTop(0, 20) + 1);
  assert.deepEqual([first, last], [10, 21]);
  assert.deepEqual(stack.ranksBetween(0, 0, HEAD), { first: 0, last: 0 });
  const below = stack.ranksBetween(0, stack.height + 100, stack.height + 200);
  assert.equal(below.last - below.first, 0);
});
