import assert from "node:assert/strict";
import { test } from "node:test";

import { SCHEMA } from "../../../../src/serried/views/web/static/base/payload.js";
import { Simulated } from "../../../../src/serried/views/web/static/schedule/model/simulated.js";
import { packed } from "../../packed.js";

const KINDS = [
  { number: 1, name: "F", colour: "#5093c2" },
  { number: 2, name: "B", colour: "#d47d20" },
];

//   rank 0   0F0 0..1    idle 1..2   (0F1;0B0) 2..5        a pair, of one time
//   rank 1   idle 0..1   1F0 1..2    1B0 2..4
function schedule() {
  const header = {
    schema: SCHEMA,
    name: "toy",
    num_ranks: 2,
    ticks_per_unit: 2,
    makespan: 5,
    stages_of: [[0], [1]],
    stages_per_rank: 1,
    limit: null,
    parts: 1,
    latency: 0,
    peak: { to_weight: 2, to_input: 2 },
  };
  return new Simulated(
    packed(header, {
      bounds: Int32Array.of(0, 3, 5),
      start: Int32Array.of(0, 4, 4, 2, 4),
      end: Int32Array.of(2, 10, 10, 4, 8),
      stage: Uint8Array.of(0, 0, 0, 1, 1),
      microbatch: Uint8Array.of(0, 1, 0, 0, 0),
      kind: Uint8Array.of(1, 1, 2, 1, 2),
      joined: Uint8Array.of(0, 1, 0, 0, 0),
      critical: Uint8Array.of(1, 0, 1, 1, 1),
      source: Int32Array.of(-1, -1, 4, 0, -1),
      "held:to_weight": Uint8Array.of(1, 2, 1, 1, 0),
      "held:to_input": Uint8Array.of(1, 2, 1, 1, 0),
      "idle:bounds": Int32Array.of(0, 1, 3),
      "idle:start": Int32Array.of(2, 0, 8),
      "idle:end": Int32Array.of(4, 2, 10),
      "idle:cause": Uint8Array.of(1, 0, 5),
      "idle:source": Int32Array.of(4, -1, -1),
      "path:rank": Int32Array.of(0),
      "path:message": Uint8Array.of(0),
      "path:entry": Int32Array.of(0),
      "path:start": Float64Array.of(0),
      "path:end": Float64Array.of(5),
    }),
    KINDS,
    ["WARM_UP", "DEPENDENCY", "LATENCY", "MEMORY_LIMIT", "ALL_REDUCE", "COOL_DOWN"],
  );
}

test("ticks become units", () => {
  assert.deepEqual([...schedule().times.end], [1, 5, 5, 2, 4]);
});

test("an action is named as Python does, and found by its name", () => {
  const data = schedule();
  const names = Array.from({ length: data.length }, (_, i) => data.actionName(i));
  assert.deepEqual(names, ["0F0", "0F1", "0B0", "1F0", "1B0"]);
  assert.deepEqual(
    names.map((name) => data.entryOf(name)),
    [0, 1, 2, 3, 4],
  );
  for (const none of ["", "9F9", "0I0", "F0", "1:0F0x"]) assert.equal(data.entryOf(none), -1);
});

test("the halves of a pair are drawn side by side, and each knows the other", () => {
  const data = schedule();
  assert.deepEqual(
    [data.drawn.start[1], data.drawn.end[1], data.drawn.start[2], data.drawn.end[2]],
    [2, 3.5, 3.5, 5],
  );
  assert.deepEqual([data.partner(1), data.partner(2), data.partner(0)], [2, 1, -1]);
  assert.deepEqual([data.entryAt(0, 3), data.entryAt(0, 4)], [1, 2]);
});

test("at every moment a rank runs an action or is idle", () => {
  const data = schedule();
  for (const rank of [0, 1]) {
    for (let time = 0; time < 5; time += 0.25) {
      assert.notEqual(
        data.entryAt(rank, time) < 0,
        data.idleAt(rank, time) < 0,
        `rank ${rank} at ${time}`,
      );
    }
  }
  assert.equal(data.idleAt(0, 1.5), 0);
  assert.equal(data.causes[data.idle.cause[data.idleAt(1, 4.5)]], "COOL_DOWN");
});

test("the idle time before an action is what ends where it starts", () => {
  const data = schedule();
  assert.deepEqual(data.idleBefore(1), [0]);
  assert.deepEqual(data.idleBefore(3), [1]);
  assert.deepEqual(data.idleBefore(4), []);
});

test("a microbatch is found on all ranks", () => {
  assert.deepEqual(schedule().sameMicrobatch(0), [0, 2, 3, 4]);
});

test("ranks, entries in view and coverage go together", () => {
  const data = schedule();
  assert.deepEqual(
    [0, 2, 3, 4].map((entry) => data.rankOf(entry)),
    [0, 0, 1, 1],
  );
  assert.deepEqual(data.between(1, 2.5, 9), { first: 4, last: 5 });
  assert.deepEqual([...data.coverage(1).shares(0, 5, 5)], [0, 0, 1, 0, 0, 1, 0, 1, 0, 0]);
  assert.equal(data.level(0).peak, 2);
});
