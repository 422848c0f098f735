import assert from "node:assert/strict";
import { test } from "node:test";

import { findingOf, linksOf } from "../../../src/serried/views/web/static/diagnose/found.js";

const waits = (rank, what, directly) => ({ rank, waits_for: [5], what, directly });
const finding = {
  verdict: "rank 5 never arrived",
  waiting: [
    waits(7, "all-reduce 6 of dp", true),
    waits(0, "barrier 2", false),
    waits(3, "all-reduce 6 of dp", true),
    waits(1, "barrier 2", false),
  ],
};

test("ranks that wait in the same stand together, those for the culprit first", () => {
  assert.deepEqual(linksOf(finding), {
    direct: [{ what: "all-reduce 6 of dp", ranks: [7, 3] }],
    indirect: [{ what: "barrier 2", ranks: [0, 1] }],
  });
});

test("a finding is chosen by its number, and the first stands for one that there is not", () => {
  const diagnosis = { ...finding, findings: [finding, { ...finding, verdict: "other" }] };
  assert.equal(findingOf(diagnosis, "1").verdict, "other");
  assert.equal(findingOf(diagnosis, "9").verdict, "rank 5 never arrived");
  assert.equal(findingOf({ verdict: "all is well", findings: [] }, "").verdict, "all is well");
});
