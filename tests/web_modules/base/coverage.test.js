import assert from "node:assert/strict";
import { test } from "node:test";

import { Coverage, countUpTo } from "../../../src/serried/views/web/static/base/coverage.js";

const spans = (list) => ({
  start: Float64Array.from(list, ([start]) => start),
  end: Float64Array.from(list, ([, end]) => end),
  class: Uint8Array.from(list, ([, , kind]) => kind),
});

//   class 0   |--0..4--|      class 1      |--6..8--|--8..9--|
const coverage = new Coverage(
  spans([
    [0, 4, 0],
    [6, 8, 1],
    [8, 9, 1],
  ]),
  2,
);

test("a pixel holds the exact share of each class", () => {
  assert.deepEqual([...coverage.shares(0, 10, 5)], [1, 0, 1, 0, 0, 0, 0, 1, 0, 0.5]);
});

test("one pixel over everything holds the totals", () => {
  assert.deepEqual([...coverage.shares(0, 10, 1)], [0.4, 0.3]);
});

test("a pixel that cuts spans holds only their parts inside", () => {
  assert.deepEqual([...coverage.shares(3, 7, 1)], [0.25, 0.25]);
});

test("time before and after the spans is empty", () => {
  assert.deepEqual([...coverage.shares(-4, 0, 2)], [0, 0, 0, 0]);
  assert.deepEqual([...coverage.shares(9, 13, 2)], [0, 0, 0, 0]);
});

test("a regular pattern far below a pixel gives no stripes: every pixel is the same", () => {
  const many = Array.from({ length: 30000 }, (_, i) => [i, i + 1, i % 3 ? 1 : 0]);
  const shares = new Coverage(spans(many), 2).shares(0, 30000, 100);
  for (let pixel = 0; pixel < 100; pixel++) {
    assert.ok(Math.abs(shares[2 * pixel] - 1 / 3) < 1e-9);
    assert.ok(Math.abs(shares[2 * pixel + 1] - 2 / 3) < 1e-9);
  }
});

test("shares of any view add up to the time that the spans fill in it", () => {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  let time = 0;
  const list = Array.from({ length: 500 }, () => {
    const start = time + random();
    time = start + random() * 3;
    return [start, time, Math.floor(random() * 3)];
  });
  const many = new Coverage(spans(list), 3);
  for (const [from, to] of [
    [0, time],
    [time / 3, time / 2],
    [-5, time + 5],
  ]) {
    const shares = many.shares(from, to, 37);
    const filled = shares.reduce((sum, share) => sum + share, 0) * ((to - from) / 37);
    const exact = list.reduce(
      (sum, [start, end]) => sum + Math.max(0, Math.min(end, to) - Math.max(start, from)),
      0,
    );
    assert.ok(Math.abs(filled - exact) < 1e-6);
  }
});

test("countUpTo finds the place of a value in order", () => {
  const values = Float64Array.of(1, 2, 2, 5);
  assert.deepEqual(
    [0, 1, 2, 3, 9].map((limit) => countUpTo(values, limit)),
    [0, 1, 3, 3, 4],
  );
});
