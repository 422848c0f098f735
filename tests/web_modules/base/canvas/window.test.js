import assert from "node:assert/strict";
import { test } from "node:test";

import { TimeWindow } from "../../../../src/serried/views/web/static/base/canvas/window.js";

test("the timeline's zoom keeps the time under the pointer there", () => {
  const time = new TimeWindow(1e9);
  const under = () => time.start + 0.25 * time.span;
  const before = under();
  time.zoom(3, 0.25);
  assert.ok(Math.abs(under() - before) < 1);
  assert.ok(Math.abs(time.span - 1.02e9 / 3) < 1);
});

test("the timeline neither zooms to nothing nor loses the trace", () => {
  const time = new TimeWindow(1e9);
  for (let i = 0; i < 200; i++) time.zoom(2, 0.5);
  assert.equal(time.span, 50);
  for (let i = 0; i < 200; i++) time.pan(100);
  assert.ok(time.start < 1e9);
  for (let i = 0; i < 200; i++) time.zoom(0.5, 0.5);
  assert.ok(time.span <= 1.5e9);
});

test("a timeline's view survives the way through the address", () => {
  const time = new TimeWindow(1e9);
  time.zoom(8, 0.7);
  const other = new TimeWindow(1e9);
  assert.equal(other.take(String(time)), true);
  assert.equal(String(other), String(time));
  assert.equal(other.take("nonsense"), false);
  assert.equal(other.take("5,4"), false);
});
