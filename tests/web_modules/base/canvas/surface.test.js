import assert from "node:assert/strict";
import { test } from "node:test";

import { Surface } from "../../../../src/serried/views/web/static/base/canvas/surface.js";

Object.assign(globalThis, { matchMedia: () => ({ matches: false, addEventListener: () => {} }) });
const { isLarge } = await import("../../../../src/serried/views/web/static/map/fill.js");

/** @param {number} width @param {number} height */
function surfaceOf(width, height) {
  Object.assign(globalThis, { window: { devicePixelRatio: 2 } });
  const canvas = { width: 0, height: 0, getContext: () => ({}) };
  const frame = { clientWidth: width, clientHeight: height };
  return new Surface(
    /** @type {HTMLCanvasElement} */ (/** @type {unknown} */ (canvas)),
    /** @type {HTMLElement} */ (/** @type {unknown} */ (frame)),
  );
}

test("what moves takes fewer pixels, and what rests all of the screen's again", () => {
  const surface = surfaceOf(1000, 700);
  assert.equal(surface.resize(), true);
  surface.coarsen(2);
  assert.deepEqual([surface.canvas.width, surface.canvas.height, surface.density], [1000, 700, 1]);
  assert.equal(surface.resize(), false);
  surface.coarsen(1);
  assert.deepEqual([surface.canvas.width, surface.canvas.height, surface.density], [2000, 1400, 2]);
});

test("only a large job on many pixels takes fewer", () => {
  const wide = { width: 2240, height: 1302, sharp: 1 };
  assert.equal(isLarge(wide, 131_072), true);
  assert.equal(isLarge(wide, 1024), false);
  assert.equal(isLarge({ ...wide, width: 1100, height: 760 }, 131_072), false);
});
