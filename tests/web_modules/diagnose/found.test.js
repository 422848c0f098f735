import assert from "node:assert/strict";
import { test } from "node:test";

import { findingOf } from "../../../src/serried/views/web/static/diagnose/found.js";

const finding = { verdict: "rank 5 never arrived", waiting: [] };

test("a finding is chosen by its number, and the first stands for one that there is not", () => {
  const diagnosis = { ...finding, findings: [finding, { ...finding, verdict: "other" }] };
  assert.equal(findingOf(diagnosis, "1").verdict, "other");
  assert.equal(findingOf(diagnosis, "9").verdict, "rank 5 never arrived");
  assert.equal(findingOf({ verdict: "all is well", findings: [] }, "").verdict, "all is well");
});
