import assert from "node:assert/strict";
import { test } from "node:test";

import { matchingRanks, readSearch } from "../../../src/serried/views/web/static/map/search.js";

const READ = [
  ["5000", [["rank", 5000]]],
  ["rank 7", [["rank", 7]]],
  ["node 625", [["node", 625]]],
  ["node625", [["node", 625]]],
  [
    "pp=4 tp=0",
    [
      ["pp", 4],
      ["tp", 0],
    ],
  ],
  [
    " PP 4, tp 0 ",
    [
      ["pp", 4],
      ["tp", 0],
    ],
  ],
  ["节点 3", [["node", 3]]],
  [
    "节点3，tp=1",
    [
      ["node", 3],
      ["tp", 1],
    ],
  ],
  [
    "stage 2 local 5",
    [
      ["stage", 2],
      ["local", 5],
    ],
  ],
];
for (const [text, wishes] of READ) {
  test(`"${text}" is read`, () => {
    assert.deepEqual(
      readSearch(text),
      wishes.map(([what, value]) => ({ what, value })),
    );
  });
}

for (const text of ["", "   ", "tp=", "tp=x", "hello", "1.5", "-3", "5 000 x"]) {
  test(`"${text}" is no search`, () => assert.equal(readSearch(text), null));
}

const ranks = [...Array(16).keys()];
const scene = {
  worldSize: 16,
  node: Int32Array.from(ranks, (rank) => rank >> 3),
  localRank: Int32Array.from(ranks, (rank) => rank & 7),
  stage: Int32Array.from(ranks, (rank) => rank >> 2),
  axes: new Map([
    ["tp", Int32Array.from(ranks, (rank) => rank % 2)],
    ["pp", Int32Array.from(ranks, (rank) => rank >> 2)],
  ]),
  job: { axes: { tp: 2, cp: 1, pp: 4 } },
};
const found = (text) => {
  const matches = matchingRanks(scene, readSearch(text));
  return matches && [...matches];
};

test("wishes narrow one another", () => {
  assert.deepEqual(found("13"), [13]);
  assert.deepEqual(found("node 1"), [8, 9, 10, 11, 12, 13, 14, 15]);
  assert.deepEqual(found("pp=2 tp=1"), [9, 11]);
  assert.deepEqual(found("node 0 stage 1 local 5"), [5]);
});

test("an axis of size 1 has only place 0", () => {
  assert.equal(found("cp=0").length, 16);
  assert.deepEqual(found("cp=1"), []);
});

test("what the layout has not is told from what is not there", () => {
  assert.equal(found("ep=0"), null);
  assert.deepEqual(found("16"), []);
});
