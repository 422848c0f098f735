import assert from "node:assert/strict";
import { test } from "node:test";

import {
  changeOf,
  isPicked,
  layoutName,
  marksOf,
} from "../../../src/serried/views/web/static/plan/found.js";
import { dotAt, dotBeside, dotsOf } from "../../../src/serried/views/web/static/plan/front.js";

/**
 * @param {number} step
 * @param {number} peak
 * @param {object} [asked]
 */
function found(step, peak, asked = {}) {
  return /** @type {import("../../../src/serried/views/web/static/plan/found.js").FoundLayout} */ ({
    asked: {
      sizes: { tp: 2, pp: 4, cp: 1, dp: 2, ep: 1, etp: 2, chunks: 2 },
      schedule: "interleaved-1f1b",
      stage_layers: [4, 4, 4, 4, 4, 4, 4, 4],
      micro_batch: 2,
      order: "tp-cp-ep-pp-dp",
      zero: 1,
      recompute: { kind: "full", modules: [] },
      ...asked,
    },
    step_s: step,
    peak_bytes: peak,
    card_bytes: 80,
  });
}

test("a layout makes the job and the plan that it was found as", () => {
  const even = changeOf(found(1, 1));
  assert.equal(layoutName(found(1, 1)), "tp 2 pp 4 dp 2");
  assert.deepEqual(
    [even.tp, even.pp, even.etp, even.plan_chunks, even.account_for, even.recompute, even.order],
    ["2", "4", "", "2", "", "full", "tp-cp-ep-pp-dp"],
  );
  const uneven = found(1, 1, { schedule: "zbv", stage_layers: [3, 4, 4, 3] });
  assert.equal(changeOf(uneven).account_for, "embedding,loss");
  assert.equal(changeOf(uneven).plan_chunks, "");
  const modules = found(1, 1, {
    recompute: { kind: "selective", modules: ["layernorm", "moe_act"] },
  });
  assert.equal(changeOf(modules).recompute, "selective:layernorm,moe_act");
  assert.ok(isPicked({ ...even, model: "x" }, found(1, 1)));
  assert.ok(!isPicked({ ...even, zero: "3" }, found(1, 1)));
});

const CLOUD = {
  manners: [
    { schedule: "zbv", zero: 3, recompute: { kind: "none", modules: [] }, orders: ["a", "b"] },
  ],
  ...{ manner: [0], tp: [4], pp: [2], cp: [1], dp: [2], ep: [1], etp: [4], chunks: [2] },
  ...{ micro_batch: [1], order: [1], is_even: [false], step_s: [2.5], peak_bytes: [65] },
};
const ANSWER = {
  verdict: "",
  command: "",
  words: { recompute: {} },
  best: [found(1, 70), found(3, 60)],
  pareto: [found(1, 70), found(2, 30)],
  misses: [],
  cloud: CLOUD,
};
const SIZE = { width: 400, height: 256 };

test("every layout stands in the picture where it is found again", () => {
  const marks = marksOf(ANSWER);
  assert.deepEqual(
    marks.map(({ role }) => role),
    ["cloud", "best", "best", "front", "front"],
  );
  const dots = dotsOf(marks, SIZE);
  for (const { layout, x, y } of dots) {
    assert.ok(0 < x && x < SIZE.width && 0 < y && y < SIZE.height);
    const { asked, step_s: step } = dotAt(dots, { x: x + 1, y: y - 1 })?.layout ?? layout;
    assert.deepEqual([asked.schedule, step], [layout.asked.schedule, layout.step_s]);
  }
  assert.equal(dotAt(dots, { x: 5, y: 5 }), null);
});

test("a layout of the cloud makes the job and the plan that it is of", () => {
  const [{ layout }] = marksOf(ANSWER);
  const { account_for: ends, order, pp, recompute, schedule, tp, zero } = changeOf(layout);
  assert.deepEqual([tp, pp, schedule, zero, recompute], ["4", "2", "zbv", "3", "none"]);
  assert.equal(order, "b");
  assert.equal(ends, "embedding,loss");
});

test("arrow keys go from layout to layout, each the way it points", () => {
  const dots = dotsOf(marksOf(ANSWER), SIZE);
  const steps = (/** @type {{dx: number, dy: number}[]} */ ...ways) => {
    let at = null;
    for (const way of ways) at = dotBeside(dots, at, way);
    return at?.layout.step_s;
  };
  const [right, left] = [
    { dx: 1, dy: 0 },
    { dx: -1, dy: 0 },
  ];
  assert.equal(steps(right), 1);
  assert.equal(steps(right, right), 2.5);
  assert.equal(steps(right, right, right), 3);
  assert.equal(steps(right, right, right, right), 3);
  assert.equal(steps(right, right, left), 1);
  assert.equal(steps(right, right, { dx: 0, dy: 1 }), 3);
});
