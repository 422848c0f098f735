import assert from "node:assert/strict";
import { test } from "node:test";

import { placeBeside } from "../../../src/serried/views/web/static/learn/hover.js";

const page = { width: 1400, height: 900 };
const word = (left, top) => ({ left, top, right: left + 40, bottom: top + 20 });

test("a card stands below its word, and above where there is no room below", () => {
  assert.deepEqual(placeBeside(word(300, 100), { width: 420, height: 500 }, page), {
    left: 300,
    top: 126,
  });
  assert.deepEqual(placeBeside(word(300, 700), { width: 420, height: 500 }, page), {
    left: 300,
    top: 194,
  });
});

test("a high card stands beside a word in the middle, and covers it on no side", () => {
  const card = { width: 880, height: 700 };
  assert.equal(placeBeside(word(20, 400), card, page).left, 66);
  assert.equal(placeBeside(word(1300, 400), card, page).left, 414);
});
