// The plan: one step of one pipeline, on the clock of every step and rank.

import assert from "node:assert/strict";
import test from "node:test";

import { merged } from "../../../../src/serried/views/web/static/base/coverage.js";
import { SCHEMA } from "../../../../src/serried/views/web/static/base/payload.js";
import { Plan } from "../../../../src/serried/views/web/static/timeline/trace/plan.js";
import { packed } from "../../packed.js";

const [F, B] = [1, 2];
/** Two places: F then B, the second place 10 later; steps begin at 100 and 300. */
const plan = new Plan(
  packed(
    { schema: SCHEMA, kind: "plan", schedule: "1f1b" },
    {
      "planned:place": Int32Array.of(0, 0, 1, 1),
      "planned:kind": Int32Array.of(F, B, F, B),
      "planned:stage": Int32Array.of(0, 0, 1, 1),
      "planned:microbatch": Int32Array.of(0, 0, 0, 0),
      "planned:start_ns": Float64Array.of(0, 50, 10, 30),
      "planned:end_ns": Float64Array.of(10, 70, 20, 50),
      place: Int32Array.of(0, 0, 1, 1),
      "step:number": Int32Array.of(4, 5),
      "step:start_ns": Float64Array.of(100, 300),
    },
  ),
);

test("a recorded span has its planned times, by the place of its rank and its step", () => {
  assert.deepEqual(plan.of(1, { kind: F, stage: 0, microbatch: 0, step: 5 }), {
    start: 300,
    end: 310,
  });
  assert.deepEqual(plan.of(3, { kind: B, stage: 1, microbatch: 0, step: 4 }), {
    start: 130,
    end: 150,
  });
  assert.equal(plan.of(3, { kind: B, stage: 1, microbatch: 9, step: 4 }), null);
  assert.equal(plan.of(0, { kind: F, stage: 0, microbatch: 0, step: 6 }), null);
});

test("the bars in view are those that meet it, of every step", () => {
  assert.deepEqual(
    plan.between(0, 105, 340).map(({ start, end, step }) => [start, end, step]),
    [
      [100, 110, 4],
      [150, 170, 4],
      [300, 310, 5],
    ],
  );
  assert.equal(plan.count(0, 105, 340), 3);
  assert.deepEqual(plan.between(2, 171, 299), []);
});

test("thin bars become exact shares of their pixels", () => {
  const shares = plan.shares(0, 100, 400, 3, (kind) => kind - 1, 2);
  const rounded = Array.from(shares, (share) => Number(share.toFixed(6)));
  assert.deepEqual(rounded, [0.1, 0.2, 0, 0, 0.1, 0.2]);
});

test("stretches that meet are joined, in order", () => {
  assert.deepEqual(
    merged([
      [5, 9],
      [1, 3],
      [2, 4],
      [9, 10],
    ]),
    [
      [1, 4],
      [5, 10],
    ],
  );
  assert.deepEqual(merged([]), []);
});
