import assert from "node:assert/strict";
import { test } from "node:test";

import {
  DEFAULTS,
  TYPES,
  asksFor,
  namesJob,
  question,
  readState,
  sortedDims,
  withJob,
  withTraining,
  writeState,
} from "../../../../src/serried/views/web/static/desk/state/fields.js";

test("the defaults are the empty address", () => {
  assert.equal(writeState(DEFAULTS), "");
  assert.deepEqual(readState(""), { ...DEFAULTS });
});

test("every field survives the way through the address", () => {
  const state = Object.fromEntries(
    Object.keys(DEFAULTS).map((field) => [field, `${field} & 值=1`]),
  );
  const kept = { ...state, view: "plan", dims: "dp,tp", set: "a=1\nb.c=x y" };
  assert.deepEqual(readState(`?${writeState(kept)}`), kept);
});

test("only what differs from the defaults is written", () => {
  assert.equal(
    writeState({
      ...DEFAULTS,
      world_size: "64",
      dims: "dp,tp",
      kind: "mp\nembd",
      pinned_group: "tp:3",
    }),
    "world_size=64&dims=dp,tp&kind=mp&kind=embd&pinned_group=tp:3",
  );
});

test("a field that must always stand does", () => {
  assert.equal(writeState({ ...DEFAULTS }, ["world_size"]), "world_size=16");
  assert.equal(namesJob("?world_size=16"), true);
  assert.equal(namesJob("?dims=dp&lang=zh"), false);
});

test("words that are no field are passed over", () => {
  assert.deepEqual(readState("?token=secret&toString=1"), { ...DEFAULTS });
});

test("dimensions stand once, in order, whatever was typed; new ones follow", () => {
  assert.equal(sortedDims(["cp", "tp", "dp", "tp", ""]), "dp,tp,cp");
  assert.equal(sortedDims(["wp", "tp"]), "tp,wp");
  assert.equal(readState("?dims=cp,dp").dims, "dp,cp");
});

test("there are eleven named types, each as an address writes it", () => {
  assert.equal(TYPES.length, 11);
  for (const type of TYPES) assert.equal(sortedDims(type.split(",")), type);
});

test("a question says every size, and leaves out what was not given", () => {
  const words = new URLSearchParams(
    question({ ...DEFAULTS, dims: "dp", set: "a=1\n\nb=2" }, "zh", { rank: "5" }),
  );
  assert.equal(words.get("world_size"), "16");
  assert.equal(words.get("tp"), "2");
  assert.equal(words.get("lang"), "zh");
  assert.equal(words.get("rank"), "5");
  assert.deepEqual(words.getAll("set"), ["a=1", "b=2"]);
  assert.equal(words.has("order"), false);
  assert.equal(words.has("map"), false);
});

test("a trace's job replaces all of the job and unpins", () => {
  const job = {
    framework: "megatron",
    world_size: "8",
    tp: "2",
    pp: "2",
    gpus_per_node: "4",
    set: ["x=1", "y=2"],
  };
  const state = withJob({ ...DEFAULTS, cp: "2", order: "pp-tp", rank: "3", dims: "tp" }, job);
  assert.deepEqual(
    [state.world_size, state.pp, state.cp, state.order, state.rank],
    ["8", "2", "1", "", ""],
  );
  assert.equal(state.set, "x=1\ny=2");
  assert.equal(state.dims, "tp");
  assert.equal(asksFor(state, job), true);
  assert.equal(asksFor({ ...state, tp: "4" }, job), false);
});

test("a launch file's training replaces that of the file before, and leaves what was typed", () => {
  const first = { model: "llama3-70b", global_batch: "512", microbatches: "32", other: "none" };
  const shown = withTraining({ ...DEFAULTS, sequence: "4096" }, first);
  assert.equal(shown.global_batch, "512");
  assert.ok(!("other" in shown));
  const typed = { ...shown, model: "gpt3-175b" };
  const next = withTraining(typed, { global_batch: "64" }, first);
  assert.deepEqual(
    [next.model, next.sequence, next.global_batch, next.microbatches],
    ["gpt3-175b", "4096", "64", DEFAULTS.microbatches],
  );
});
