import assert from "node:assert/strict";
import { test } from "node:test";

import { stepLabels } from "../../../src/serried/views/web/static/timeline/paint/names.js";

const view = {
  left: 100,
  right: 500,
  name: (/** @type {number} */ step) => `step ${step}`,
  wide: (/** @type {string} */ text) => 6 * text.length + 8,
};

/** @param {[number, number, number][]} steps */
const texts = (steps) =>
  stepLabels(
    steps.map(([step, start, end]) => ({ step, start, end })),
    view,
  ).map(({ text }) => text);

test("a step that fills the view is named in full", () => {
  assert.deepEqual(texts([[4, -900, 2000]]), ["step 4"]);
});

test("a step that another has not quite left is named, not the one that ends", () => {
  const steps = /** @type {[number, number, number][]} */ ([
    [0, -900, 120],
    [1, 90, 2000],
  ]);
  assert.deepEqual(texts(steps), ["step 1"]);
});

test("a step that is cut by the view keeps its number where that has room", () => {
  const cut = /** @type {[number, number, number]} */ ([0, -900, 118]);
  assert.deepEqual(texts([cut, [1, 118, 600]]), ["0", "step 1"]);
  assert.deepEqual(
    texts([
      [0, -900, 104],
      [1, 104, 600],
    ]),
    ["step 1"],
  );
});

test("of steps without room each as many are named as have, however the first is cut", () => {
  const thin = Array.from({ length: 81 }, (_, i) => 98 + 5 * i);
  const steps = thin.map((at, i) => /** @type {[number, number, number]} */ ([i, at, at + 5]));
  const named = texts(steps);
  assert.deepEqual(named.slice(0, 3), ["1", "6", "11"]);
  assert.equal(named.length, 16);
});

test("a name that begins by the right edge ends at it", () => {
  const [, last] = stepLabels(
    [
      { step: 0, start: 100, end: 495 },
      { step: 1, start: 495, end: 900 },
    ],
    view,
  );
  assert.deepEqual(last, { text: "1", x: 500 - view.wide("1") + 4 });
});
