// A collective is shown on a group of the job that would run it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { playedOn } from "../../../src/serried/views/web/static/collective/plays.js";

const GROUPS = [
  { dim: "dp", ranks: 2, group: "dp:0" },
  { dim: "tp", ranks: 8, group: "tp:0" },
  { dim: "pp", ranks: 4, group: "pp:0" },
  { dim: "cp", ranks: 1, group: "cp:0" },
];

test("a collective is played on the dimension that runs it", () => {
  assert.equal(playedOn("all-reduce", GROUPS)?.group, "dp:0");
  assert.equal(playedOn("send-receive", GROUPS)?.group, "pp:0");
});

test("without such a group it is played on the largest there is", () => {
  assert.equal(playedOn("attention", GROUPS)?.group, "tp:0", "a group of one rank sends nothing");
  assert.equal(playedOn("all-to-all", GROUPS)?.group, "tp:0");
  assert.equal(playedOn("all-reduce", [GROUPS[3]]), null);
});
