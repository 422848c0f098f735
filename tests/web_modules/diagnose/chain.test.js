import assert from "node:assert/strict";
import { test } from "node:test";

import { placesOf } from "../../../src/serried/views/web/static/diagnose/chain.js";

const box = (level) => ({ ranks: [0], named: "rank 0", what: [], waits_for: [], level });

test("boxes of one level stand below one another, further levels further right", () => {
  const [root, first, second, far] = placesOf([box(0), box(1), box(1), box(2)], 13.5);
  assert.equal(root.x, 0);
  assert.equal(first.x, second.x);
  assert.ok(root.x < first.x && first.x < far.x);
  assert.ok(first.y < second.y);
  assert.equal(far.y, 0);
});
