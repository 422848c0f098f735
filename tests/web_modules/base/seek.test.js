// Searching a timeline: what is typed becomes what is wanted, and tells spans apart.

import assert from "node:assert/strict";
import test from "node:test";

import {
  isRowWanted,
  readSeek,
  seekWords,
  spanTest,
} from "../../../src/serried/views/web/static/base/seek.js";

const KINDS = [
  "F",
  "B",
  "I",
  "W",
  "SEND_F",
  "RECV_F",
  "SEND_B",
  "RECV_B",
  "REDUCE_GRAD",
  "OPTIMIZER",
  "OVERLAP_F_B",
  "RING",
  "SPAN",
];
const words = (text) => {
  const wanted = readSeek(text, KINDS);
  return wanted && Object.fromEntries(new URLSearchParams(seekWords(wanted)));
};

test("an action is read whole or in part", () => {
  assert.deepEqual(words("3F2"), { kinds: "F", stage: "3", microbatch: "2" });
  assert.deepEqual(words("3f"), { kinds: "F", stage: "3" });
  assert.deepEqual(words("B7"), { kinds: "B", microbatch: "7" });
  assert.deepEqual(words("0SEND_F2"), { kinds: "SEND_F", stage: "0", microbatch: "2" });
  assert.deepEqual(words("SEND"), { kinds: "SEND_F,SEND_B" });
  assert.deepEqual(words("recv"), { kinds: "RECV_F,RECV_B" });
  assert.deepEqual(words("opt"), { kinds: "OPTIMIZER" });
});

test("plain words name kinds, in both languages", () => {
  assert.deepEqual(words("forward"), { kinds: "F,OVERLAP_F_B" });
  assert.deepEqual(words("等待"), { kinds: "RECV_F,RECV_B" });
  assert.deepEqual(words("反向 rank 3"), { kinds: "B,I,OVERLAP_F_B", rank: "3" });
});

test("numbers go by the word before them, and alone are ranks", () => {
  assert.deepEqual(words("37"), { rank: "37" });
  assert.deepEqual(words("rank 37"), { rank: "37" });
  assert.deepEqual(words("rank=37"), { rank: "37" });
  assert.deepEqual(words("mb 5"), { microbatch: "5" });
  assert.deepEqual(words("mb5 step:2"), { microbatch: "5", step: "2" });
  assert.deepEqual(words("微批次5，节点 2"), { microbatch: "5", node: "2" });
  assert.deepEqual(words("stage 2 F"), { kinds: "F", stage: "2" });
});

test("two wishes that cannot both be met, and nothing, are no search", () => {
  assert.equal(readSeek("rank 3 rank 4", KINDS), null);
  assert.equal(readSeek("  ", KINDS), null);
});

test("what is no action is a part of a name", () => {
  assert.deepEqual(words("load data"), { called: "load data" });
  assert.deepEqual(words("rank 2 checkpoint"), { rank: "2", called: "checkpoint" });
});

test("spans and rows are told apart as wanted", () => {
  const wanted = readSeek("rank 2 1F", KINDS);
  assert.ok(wanted);
  assert.deepEqual(
    [2, 3].map((rank) => isRowWanted(wanted, { rank, node: 0 })),
    [true, false],
  );
  const spans = {
    kind: Int32Array.of(1, 1, 2),
    stage: Int32Array.of(1, 0, 1),
    microbatch: Int32Array.of(0, 0, 0),
    step: Int32Array.of(0, 0, 0),
    named: Int32Array.of(-1, -1, -1),
  };
  const actions = [
    { number: 1, name: "F" },
    { number: 2, name: "B" },
  ];
  const test_ = spanTest(wanted, actions, []);
  assert.deepEqual(
    [0, 1, 2].map((i) => test_(spans, i)),
    [true, false, false],
  );
});

test("a name is looked for in any case of letters", () => {
  const wanted = readSeek("LOAD", KINDS);
  assert.ok(wanted);
  const none = Int32Array.of(18, 18);
  const spans = {
    kind: none,
    stage: none,
    microbatch: none,
    step: none,
    named: Int32Array.of(0, 1),
  };
  const isIt = spanTest(wanted, [], ["Load data", "log"]);
  assert.deepEqual(
    [0, 1].map((i) => isIt(spans, i)),
    [true, false],
  );
});
