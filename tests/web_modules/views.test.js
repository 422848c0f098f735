import assert from "node:assert/strict";
import { test } from "node:test";

import { Camera } from "../../src/serried/views/web/static/camera.js";
import { SHAPES, slotTable } from "../../src/serried/views/web/static/marks.js";
import { TimeWindow } from "../../src/serried/views/web/static/timewindow.js";

test("the map's zoom keeps what is under the pointer there", () => {
  const camera = new Camera();
  camera.fit({ width: 40, height: 20 }, { width: 800, height: 600 }, 10);
  const under = () => [camera.x + 300 / camera.scale, camera.y + 200 / camera.scale];
  const before = under();
  camera.zoom(1.7, 300, 200);
  under().forEach((value, i) => assert.ok(Math.abs(value - before[i]) < 1e-9));
});

test("the map fits whole and in the middle", () => {
  const camera = new Camera();
  camera.fit({ width: 40, height: 20 }, { width: 800, height: 600 }, 10);
  assert.ok(40 * camera.scale <= 780 + 1e-9);
  assert.ok(Math.abs((20 - camera.x) * camera.scale - 400) < 1e-9);
  assert.ok(Math.abs((10 - camera.y) * camera.scale - 300) < 1e-9);
});

test("the map zooms out no further than half of all", () => {
  const camera = new Camera();
  camera.fit({ width: 40, height: 20 }, { width: 800, height: 600 }, 10);
  const { scale } = camera;
  for (let i = 0; i < 50; i++) camera.zoom(0.5, 0, 0);
  assert.equal(camera.scale, scale / 2);
});

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

test("every mark is a closed shape of about the same size, and no two are alike", () => {
  const outlines = Object.values(SHAPES).map((corners) => JSON.stringify(corners));
  assert.equal(new Set(outlines).size, outlines.length);
  for (const [name, corners] of Object.entries(SHAPES)) {
    assert.ok(corners.length >= 3, name);
    assert.ok(corners.flat().every((value) => Math.abs(value) <= 1.25), name);
  }
});

test("marks share a cell in as many slots as there are kinds", () => {
  for (let count = 1; count <= 9; count++) {
    const { columns, rows } = slotTable(count);
    assert.ok(columns * rows >= count && columns * (rows - 1) < count);
  }
});
