import assert from "node:assert/strict";
import { test } from "node:test";

import { SCHEMA } from "../../../src/serried/views/web/static/base/payload.js";
import { Waits } from "../../../src/serried/views/web/static/diagnose/waits.js";
import { packed } from "../packed.js";

const waits = new Waits(
  packed(
    { schema: SCHEMA },
    {
      value: Float64Array.of(2, 1, 3, 2, NaN, 0),
      target: Int32Array.of(2, 0, -1, 2, -1, -1),
      directly: Uint8Array.of(1, 0, 0, 1, 0, 0),
    },
  ),
);

test("the ranks that wait for another are found by it", () => {
  assert.deepEqual([...waits.waitingFor(2)], [0, 3]);
  assert.deepEqual([...waits.waitingFor(0)], [1]);
  assert.deepEqual([...waits.waitingFor(5)], []);
});

test("culprits are told by their state, also where only the first of them are named", () => {
  assert.deepEqual(waits.culprits, [2]);
});
