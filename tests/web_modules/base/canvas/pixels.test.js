import assert from "node:assert/strict";
import { test } from "node:test";

import { Pixels, mixed } from "../../../../src/serried/views/web/static/base/canvas/pixels.js";

globalThis.ImageData ??= class {
  constructor(width, height) {
    this.data = new Uint8ClampedArray(4 * width * height);
  }
};

const COLOURS = { fill: 1, edge: 2, over: 3, line: Infinity };

/** Returns a buffer's rows as text, a digit a pixel. */
function rows(pixels) {
  const text = Array.from(pixels.data, String).join("");
  return Array.from({ length: pixels.height }, (_, y) =>
    text.slice(y * pixels.width, (y + 1) * pixels.width),
  );
}

function made(width, height) {
  const pixels = new Pixels();
  pixels.clear(width, height, 0);
  return pixels;
}

test("a box is filled, cut at the edges of the picture", () => {
  const pixels = made(5, 3);
  pixels.box(3, 1, 9, 9, 7);
  assert.deepEqual(rows(pixels), ["00000", "00077", "00077"]);
  pixels.box(4, 0, 4, 3, 9);
  assert.deepEqual(rows(pixels)[0], "00000");
});

test("columns stand on their bottom, a line without holes along their tops", () => {
  const pixels = made(7, 4);
  pixels.columns(Float64Array.of(0, 1, 1, 4, 4, 2, 0), 0, 0, 4, COLOURS);
  assert.deepEqual(rows(pixels), ["0002200", "0002200", "0002120", "0221120"]);
});

test("what is above the line has a colour of its own", () => {
  const pixels = made(4, 4);
  pixels.columns(Float64Array.of(4, 4, 4, 1), 0, 0, 4, { ...COLOURS, line: 2 });
  const seen = rows(pixels);
  assert.equal(seen[0].slice(0, 3), "333");
  assert.equal(seen[1].slice(0, 3), "333");
  assert.equal(seen[3][0], "1");
  assert.equal(seen[3][3], "2");
});

test("two pixels are mixed channel by channel", () => {
  assert.equal(mixed(0xff000000, 0xffffffff, 0.5), 0xff808080);
  assert.equal(mixed(0xff102030, 0xffffffff, 0), 0xff102030);
  assert.equal(mixed(0xff102030, 0xff405060, 1), 0xff405060);
});
