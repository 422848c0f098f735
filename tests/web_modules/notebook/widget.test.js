import assert from "node:assert/strict";
import { test } from "node:test";

import widget, { rowAfter } from "../../../src/serried/views/notebook/widget.js";

test("arrow keys lead to the neighbours and stop at the ends", () => {
  assert.equal(rowAfter("ArrowRight", 2, 4), 3);
  assert.equal(rowAfter("ArrowDown", 3, 4), 3);
  assert.equal(rowAfter("ArrowLeft", 2, 4), 1);
  assert.equal(rowAfter("ArrowUp", 0, 4), 0);
});

test("without a selection a key begins at the end that it comes from", () => {
  assert.equal(rowAfter("ArrowRight", -1, 4), 0);
  assert.equal(rowAfter("ArrowLeft", -1, 4), 3);
});

test("Home, End and Escape lead to the first, the last and none", () => {
  assert.equal(rowAfter("Home", 2, 4), 0);
  assert.equal(rowAfter("End", 2, 4), 3);
  assert.equal(rowAfter("Escape", 2, 4), -1);
});

test("other keys, and a picture without rows, lead nowhere", () => {
  assert.equal(rowAfter("a", 2, 4), null);
  assert.equal(rowAfter("constructor", 2, 4), null);
  assert.equal(rowAfter("ArrowRight", -1, 0), null);
});

test("a notebook finds what draws the view", () => {
  assert.equal(typeof widget.render, "function");
});
