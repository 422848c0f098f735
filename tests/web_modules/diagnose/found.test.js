import assert from "node:assert/strict";
import { test } from "node:test";

import { findingOf, sameFinding } from "../../../src/serried/views/web/static/diagnose/found.js";

const finding = { verdict: "rank 5 never arrived", waiting: [] };

test("a finding is chosen by its number, and the first stands for one that there is not", () => {
  const diagnosis = { ...finding, findings: [finding, { ...finding, verdict: "other" }] };
  assert.equal(findingOf(diagnosis, "1").verdict, "other");
  assert.equal(findingOf(diagnosis, "9").verdict, "rank 5 never arrived");
  assert.equal(findingOf({ verdict: "all is well", findings: [] }, "").verdict, "all is well");
});

test("a finding is found again in a fresh diagnosis by its kind and ranks", () => {
  const hung = { ...finding, kind: "never_arrived", ranks: [5] };
  const slow = { ...finding, kind: "slow", ranks: [2, 3] };
  const fresh = { ...finding, findings: [hung, { ...slow, verdict: "now 9 %" }] };
  assert.equal(sameFinding(fresh, slow), "1");
  assert.equal(sameFinding(fresh, hung), "");
  assert.equal(sameFinding(fresh, { ...slow, ranks: [2] }), "");
});
