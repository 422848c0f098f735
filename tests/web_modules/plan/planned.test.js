import assert from "node:assert/strict";
import { test } from "node:test";

import { foundAt, placesOf } from "../../../src/serried/views/web/static/plan/paint.js";
import { itemsOf, partsOf, stacked } from "../../../src/serried/views/web/static/plan/planned.js";
import {
  PLAN_DEFAULTS,
  isAssumed,
  planField,
  planWords,
  stillAssumed,
} from "../../../src/serried/views/web/static/plan/state.js";

/** A plan of two places of 30 and 90 bytes on cards of 80, and a step of 4 s. */
const PLAN =
  /** @type {import("../../../src/serried/views/web/static/plan/planned.js").PlanAnswer} */ (
    /** @type {unknown} */ ({
      memory: [
        { stages: [0], items: { parameters: 10, activations: 20 }, total: 30, card: 80 },
        { stages: [1], items: { activations: 60, parameters: 20, own: 10 }, total: 90, card: 80 },
      ],
      time: { step_s: 4, parts_s: { bubble: 1, matrices: 3, cp: 0 } },
      words: {
        memory: { parameters: "p", activations: "a" },
        time: { matrices: "m", bubble: "b" },
      },
    })
  );

test("bars stack what is known in its order, then the rest, and nothing that is zero", () => {
  assert.deepEqual(stacked({ b: 2, c: 0, d: 4, a: 1 }, ["a", "b", "c"]), [
    { name: "a", from: 0, to: 1 },
    { name: "b", from: 1, to: 3 },
    { name: "d", from: 3, to: 7 },
  ]);
});

test("every item of any place has its row, and the parts sum to the step", () => {
  assert.deepEqual(itemsOf(PLAN), [
    { name: "parameters", bytes: [10, 20] },
    { name: "activations", bytes: [20, 60] },
    { name: "own", bytes: [0, 10] },
  ]);
  assert.deepEqual(
    partsOf(PLAN).map(({ name }) => name),
    ["matrices", "bubble"],
  );
  assert.equal(partsOf(PLAN).at(-1)?.to, PLAN.time.step_s);
});

test("a point finds the bar that is drawn there", () => {
  const size = { width: 432, height: 300 };
  const { columns, foot, unit } = placesOf(PLAN, size.width, size.height);
  assert.ok(foot - unit * 90 > 0, "the fullest bar is in the picture, above the card");
  columns.forEach((left, place) =>
    assert.deepEqual(foundAt(PLAN, size, { x: left + 1, y: foot - 1 }), { place }),
  );
  assert.equal(foundAt(PLAN, size, { x: size.width * 2, y: foot - 1 }), null);
});

test("a question holds what is filled in, and a refusal finds its field", () => {
  const words = planWords({ ...PLAN_DEFAULTS, recompute: " ", model: "gpt3-175b" });
  assert.deepEqual(Object.keys(words), [
    "model",
    "cluster",
    "sequence",
    "global_batch",
    "micro_batch",
  ]);
  assert.equal(words.model, "gpt3-175b");
  assert.equal(planField("micro_batch"), "micro_batch");
  assert.equal(planField("tp"), "");
});

test("words without a field of their own go as one, and are blamed together", () => {
  const words = planWords({ ...PLAN_DEFAULTS, plan_chunks: "2", plan_more: "lora=16" });
  assert.deepEqual([words.chunks, words.more], ["2", "lora=16"]);
  assert.equal(planField("more"), "plan_more");
});

test("a field that is typed into is assumed no longer", () => {
  const state = { ...PLAN_DEFAULTS, plan_assumed: "cluster,model" };
  assert.ok(isAssumed(state, "model") && !isAssumed(state, "sequence"));
  assert.equal(stillAssumed(state, "cluster"), "model");
  assert.equal(stillAssumed(PLAN_DEFAULTS, "cluster"), "");
});
