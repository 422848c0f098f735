import assert from "node:assert/strict";
import { test } from "node:test";

import { duration, ticks } from "../../../src/serried/views/web/static/base/clock.js";

test("durations carry four digits and their unit", () => {
  const written = [0, 7, 999, 1500, 12_345_678, 2_000_000_000, 123_456_000_000].map(duration);
  assert.deepEqual(written, [
    "0 ns",
    "7 ns",
    "999 ns",
    "1.500 us",
    "12.35 ms",
    "2.000 s",
    "123.5 s",
  ]);
});

test("ticks are round, in view, and no more than asked for", () => {
  for (const [start, end] of [
    [0, 1e9],
    [-5e6, 8.6e8],
    [1.23e9, 1.2300004e9],
    [0, 130],
  ]) {
    const found = ticks(start, end, 8);
    assert.ok(found.length >= 2 && found.length <= 9, `${found.length} ticks`);
    assert.ok(found.every(({ time }) => time >= start && time <= end));
  }
});

test("ticks of one axis differ in what they say", () => {
  const labels = ticks(1.23e9, 1.2300004e9, 8).map(({ label }) => label);
  assert.equal(new Set(labels).size, labels.length);
});

test("a tick says its time with a unit", () => {
  assert.deepEqual(
    ticks(0, 4e8, 4).map(({ label }) => label),
    ["0 ms", "100 ms", "200 ms", "300 ms", "400 ms"],
  );
});
