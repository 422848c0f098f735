import assert from "node:assert/strict";
import { test } from "node:test";

import { SHAPES, slotTable } from "../../../../src/serried/views/web/static/base/canvas/marks.js";

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

test("marks share a cell in as many slots as there are kinds", () => {
  for (let count = 1; count <= 9; count++) {
    const { columns, rows } = slotTable(count);
    assert.ok(columns * rows >= count && columns * (rows - 1) < count);
  }
});
