import assert from "node:assert/strict";
import { test } from "node:test";

import {
  changeOf,
  isPicked,
  layoutName,
} from "../../../src/serried/views/web/static/plan/found.js";
import { dotAt, dotsOf } from "../../../src/serried/views/web/static/plan/front.js";

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
      zero: 1,
      recompute: { kind: "full" },
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
    [even.tp, even.pp, even.etp, even.plan_chunks, even.account_for, even.recompute],
    ["2", "4", "", "2", "", "full"],
  );
  const uneven = found(1, 1, { schedule: "zbv", stage_layers: [3, 4, 4, 3] });
  assert.equal(changeOf(uneven).account_for, "embedding,loss");
  assert.equal(changeOf(uneven).plan_chunks, "");
  assert.ok(isPicked({ ...even, model: "x" }, found(1, 1)));
  assert.ok(!isPicked({ ...even, zero: "3" }, found(1, 1)));
});

test("every layout stands in the picture where it is found again", () => {
  const [quick, small, slow] = [found(1, 70), found(2, 30), found(3, 60)];
  const answer = {
    verdict: "",
    command: "",
    best: [quick, slow],
    pareto: [quick, small],
    misses: [],
  };
  const size = { width: 400, height: 160 };
  for (const { layout, x, y } of dotsOf(answer, size)) {
    assert.ok(0 < x && x < size.width && 0 < y && y < size.height);
    assert.equal(dotAt(answer, size, { x: x + 2, y: y - 2 }), layout);
  }
  assert.equal(dotAt(answer, size, { x: 5, y: 5 }), null);
});
