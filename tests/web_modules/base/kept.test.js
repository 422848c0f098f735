import assert from "node:assert/strict";
import { test } from "node:test";

import { restore } from "../../../src/serried/views/web/static/base/kept.js";

test("numbers that are each less the one before them are summed up, whatever their sign", () => {
  const steps = Int32Array.of(5, -6, 4097, -4097, 2 ** 31 - 1, 2);
  restore(steps.buffer, [["i32", 0, 6, -1]]);
  assert.deepEqual([...steps], [5, -1, 4096, -1, 2 ** 31 - 2, -(2 ** 31)]);
  const times = Float64Array.of(2 ** 52, 1, -(2 ** 52));
  restore(times.buffer, [["f64", 0, 3, -1]]);
  assert.deepEqual([...times], [2 ** 52, 2 ** 52 + 1, 1]);
});

test("peers that are each less its rank come back after the ranks, and nobody stays nobody", () => {
  const both = Int32Array.of(3, 1, 1, 0, 4096, -1, 2 ** 30 - 5, 7);
  restore(both.buffer, [
    ["i32", 0, 4, -1],
    ["i32", 16, 4, 0],
  ]);
  assert.deepEqual([...both], [3, 4, 5, 5, 4099, -1, 0, 12]);
});

test("what is less its own place comes back, and small numbers are summed up as well", () => {
  const entries = Int32Array.of(-1, 815, 815, 2 ** 30 - 3);
  restore(entries.buffer, [["i32", 0, 4, -2]]);
  assert.deepEqual([...entries], [-1, 816, 817, 0]);
  const steps = Uint16Array.of(0, 1, 65535, 65535, 3);
  restore(steps.buffer, [["u16", 0, 5, -1]]);
  assert.deepEqual([...steps], [0, 1, 0, 65535, 2]);
});
