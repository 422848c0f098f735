import assert from "node:assert/strict";
import { test } from "node:test";

import { Execution } from "../../../src/serried/views/web/static/collective/execution.js";
import { packed } from "../packed.js";

const STEPS = 40;

/** A block of two that two ranks send to and fro, one more rank's data in it at each step. */
function execution(header = {}) {
  const both = [0, 1];
  const rows = Array.from({ length: STEPS }, (_, step) => step);
  const places = [0, 1].map((rank) => ({ rank, ranks: 1, node: rank, nodes: 1 }));
  return new Execution(
    packed(
      {
        schema: "serried.payload/1",
        num_blocks: 2,
        is_grouped: false,
        launch_time: 0,
        places: [...places, { rank: -1, ranks: 0, node: 0, nodes: 1 }],
        ...header,
      },
      {
        shape: Int32Array.from(rows),
        bounds: Int32Array.from([...rows, STEPS]),
        source: Int32Array.from(rows, (step) => both[step % 2]),
        target: Int32Array.from(rows, (step) => both[(step + 1) % 2]),
        block: Int32Array.from(rows, () => 1),
        blocks: Int32Array.from(rows, () => 1),
        moves: Int32Array.from(rows, () => 1),
        reduces: Uint8Array.from(rows, () => 1),
        across: Uint8Array.from(rows, () => 1),
        held: Uint16Array.from(rows, (step) => step + 2),
        before: Uint16Array.of(1, 1, 1, 1, 0, 0),
        asked: Uint16Array.of(2, 0, 2, 41),
        seconds: Float64Array.from(rows, () => 0.5),
        step_bytes: Float64Array.from(rows, () => 8),
        sent_bytes: Float64Array.from(rows, (step) => 8 * (step + 1)),
      },
    ),
  );
}

test("what is held after each step is what Python said, in whatever order it is asked", () => {
  const shown = execution();
  const after = (/** @type {number} */ steps) => {
    const [other, last] = [steps - 1, steps];
    const [first, second] = steps % 2 ? [other, last] : [last, other];
    return steps
      ? [1, Math.max(1, first + 1), 1, Math.max(1, second + 1), 0, 0]
      : [1, 1, 1, 1, 0, 0];
  };
  for (const steps of [40, 3, 17, 16, 0, 33, 32, 40])
    assert.deepEqual([...shown.held(steps)], after(steps), `after ${steps}`);
  assert.deepEqual([...execution().held(5)], after(5));
});

test("a block is whole once it has all that any rank is promised", () => {
  assert.deepEqual(execution().whole, [2, 41]);
});

test("rows of one way in a step are one link, with all their blocks", () => {
  assert.deepEqual(execution().links(1), [
    { source: 1, target: 0, blocks: [1], count: 1, moves: 1, reduces: true, across: true },
  ]);
});

test("time and steps follow from one another, also within a step and beyond the end", () => {
  const shown = execution();
  assert.equal(shown.total, 20);
  for (const steps of [0, 0.5, 7.25, 39.75]) assert.equal(shown.stepAt(shown.timeAt(steps)), steps);
  assert.equal(shown.stepAt(99), STEPS);
  assert.equal(shown.timeAt(99), 20);
});

test("the first step begins once the collective is launched", () => {
  const shown = execution({ launch_time: 3 });
  assert.deepEqual(
    [shown.stepAt(0), shown.stepAt(3), shown.timeAt(1), shown.total],
    [0, 0, 3.5, 23],
  );
});

test("places of several ranks hold nothing that is told", () => {
  const grouped = execution({ is_grouped: true });
  assert.equal(grouped.held(3).length, 0);
  assert.deepEqual(grouped.whole, []);
});
