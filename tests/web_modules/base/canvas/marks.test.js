import assert from "node:assert/strict";
import { test } from "node:test";

import { SHAPES } from "../../../../src/serried/views/web/static/base/canvas/marks.js";

test("every mark is a closed shape of about the same size, and no two are alike", () => {
  const outlines = Object.values(SHAPES).map((corners) => JSON.stringify(corners));
  assert.equal(new Set(outlines).size, outlines.length);
  for (const [name, corners] of Object.entries(SHAPES)) {
    assert.ok(corners.length >= 3, name);
    assert.ok(
      corners.flat().every((value) => Math.abs(value) <= 1.25),
      name,
    );
  }
});
