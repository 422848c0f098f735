import assert from "node:assert/strict";
import { test } from "node:test";

import { Camera } from "../../../src/serried/views/web/static/map/camera.js";

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
