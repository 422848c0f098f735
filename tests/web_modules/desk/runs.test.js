import assert from "node:assert/strict";
import { test } from "node:test";

import { ownLayout } from "../../../src/serried/views/web/static/desk/runs.js";
import { DEFAULTS } from "../../../src/serried/views/web/static/desk/state/fields.js";

const question = { framework: "megatron", world_size: "8", pp: "2", dims: "dp,pp" };
const one = { name: "one", question, simulated: { microbatches: "4", name: "zb-h1,1f1b,zbv" } };
const other = { name: "other", question, simulated: { microbatches: "16" } };

test("the Schedule tab has the step of the run in view, and of the next one after it", () => {
  const first = ownLayout({ ...DEFAULTS }, one);
  assert.deepEqual([first.microbatches, first.name, first.pp], ["4", "zb-h1,1f1b,zbv", "2"]);
  const second = ownLayout(first, other, one);
  assert.deepEqual([second.microbatches, second.name], ["16", DEFAULTS.name]);
});

test("what somebody asked for stays", () => {
  const asked = { ...DEFAULTS, microbatches: "32" };
  assert.equal(ownLayout(asked, one).microbatches, "32");
  assert.equal(ownLayout(asked, { name: "a check", question }).microbatches, "32");
});
