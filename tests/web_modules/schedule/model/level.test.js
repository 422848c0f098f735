import assert from "node:assert/strict";
import { test } from "node:test";

import { Level } from "../../../../src/serried/views/web/static/schedule/model/level.js";

//   F 0..1   F 1..2   B 4..6   F 6..7   B 7..9   B 9..11
//   held 1      2        1        2        1        0
const level = new Level(
  Float64Array.of(0, 1, 4, 6, 7, 9),
  Float64Array.of(1, 2, 6, 7, 9, 11),
  Uint8Array.of(1, 2, 1, 2, 1, 0),
);

test("a forward raises it when it starts, a backward lowers it when it ends", () => {
  const times = [-1, 0, 0.5, 1, 3, 5.9, 6, 8.9, 9, 10.9, 11, 20];
  assert.deepEqual(
    times.map((time) => level.at(time)),
    [0, 1, 1, 2, 2, 2, 2, 2, 1, 1, 0, 0],
  );
});

test("a pixel holds the most of its time", () => {
  const into = new Float64Array(11);
  level.peaks(0, 11, 11, into);
  assert.deepEqual([...into], [1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1]);
  level.peaks(-2, 20, 2, into);
  assert.deepEqual([...into.subarray(0, 2)], [2, 1]);
  level.peaks(-4, 0, 1, into);
  assert.equal(into[0], 0);
});

test("the peak is that of all actions", () => assert.equal(level.peak, 2));

test("no peak is lost among thousands of actions in a pixel", () => {
  const count = 10_000;
  const held = Int32Array.from({ length: count }, (_, i) => (i === 7777 ? 99 : i % 3));
  const many = new Level(
    Float64Array.from({ length: count }, (_, i) => i),
    Float64Array.from({ length: count }, (_, i) => i + 1),
    held,
  );
  const into = new Float64Array(10);
  many.peaks(0, count, 10, into);
  assert.deepEqual([...into], [2, 2, 2, 2, 2, 2, 2, 99, 2, 2]);
  for (const width of [1, 7, 333]) {
    many.peaks(5000, 8000, width, into.length < width ? new Float64Array(width) : into);
    const found = new Float64Array(width);
    many.peaks(5000, 8000, width, found);
    assert.equal(Math.max(...found), 99);
    // The action that raises it, and the one that runs before it falls again, are all that show it.
    assert.ok(found.filter((each) => each === 99).length <= 2);
  }
});

test("every pixel agrees with what each moment in it holds", () => {
  const start = [];
  const end = [];
  const held = [];
  let [time, seed] = [0, 7];
  const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let i = 0; i < 500; i++) {
    time += next() < 0.3 ? next() : 0;
    start.push(time);
    time += 0.2 + next();
    end.push(time);
    held.push(Math.max(0, (held[i - 1] ?? 0) + (next() < 0.5 ? 1 : -1)));
  }
  const random = new Level(Float64Array.from(start), Float64Array.from(end), held);
  const into = new Float64Array(61);
  random.peaks(10, time - 10, 61, into);
  const step = (time - 20) / 61;
  for (let pixel = 0; pixel < 61; pixel++) {
    const moments = [...start, ...end].filter(
      (at) => at >= 10 + pixel * step && at < 10 + (pixel + 1) * step - 1e-6,
    );
    const most = Math.max(random.at(10 + pixel * step), ...moments.map((at) => random.at(at)));
    assert.equal(into[pixel], most);
  }
});
