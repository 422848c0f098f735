import assert from "node:assert/strict";
import { test } from "node:test";

import {
  algorithmsOf,
  chosenOf,
  groupOf,
  pageOf,
  stepOf,
  stepText,
  usualFor,
} from "../../../src/serried/views/web/static/collective/state.js";
import { bytesText } from "../../../src/serried/views/web/static/base/quantity.js";
import {
  DEFAULTS,
  readState,
  writeState,
} from "../../../src/serried/views/web/static/desk/state/fields.js";

test("the address holds the collective, its group, the algorithms, the bytes and the step", () => {
  const state = {
    ...DEFAULTS,
    collective: "all-reduce",
    collective_of: "dp:3",
    algorithm: "ring,tree",
    bytes: "64MiB",
    step: "3.25",
  };
  const text = writeState(state);
  assert.equal(
    text,
    "collective=all-reduce&collective_of=dp:3&algorithm=ring,tree&bytes=64MiB&step=3.25",
  );
  assert.deepEqual(readState(`?${text}`), state);
});

test("algorithms are one or two, each once; none is the quickest", () => {
  assert.deepEqual(algorithmsOf(""), [""]);
  assert.deepEqual(algorithmsOf("ring"), ["ring"]);
  assert.deepEqual(algorithmsOf("ring, tree,ring,switch"), ["ring", "tree"]);
});

test("a group is a kind and a rank in it; anything else is none", () => {
  assert.deepEqual(groupOf("dp:3"), { kind: "dp", rank: "3" });
  assert.deepEqual(groupOf("a:b:12"), { kind: "a:b", rank: "12" });
  for (const text of ["", "dp", "dp:", ":3", "dp:x", "dp:-1"]) assert.equal(groupOf(text), null);
});

test("a moment is read as it was written, and nonsense is the beginning", () => {
  assert.equal(stepText(3.25), "3.25");
  assert.equal(stepText(0), "");
  for (const text of ["", "x", "-2", "NaN", "Infinity"]) assert.equal(stepOf(text), 0);
  assert.equal(stepOf("3.25"), 3.25);
});

test("a group begins with what groups of its dimension run", () => {
  assert.deepEqual(["ep", "pp", "cp", "tp", "dp", ""].map(usualFor), [
    "all-to-all",
    "send-receive",
    "attention",
    "all-reduce",
    "all-reduce",
    "all-reduce",
  ]);
});

test("bytes have three figures and a unit, in powers of 1024 or of 1000", () => {
  const sizes = [0, 1000, 1536, 134217728, 1.5 * 2 ** 30, 2 ** 40];
  assert.deepEqual(
    sizes.map((size) => bytesText(size)),
    ["0 B", "0.98 KiB", "1.50 KiB", "128 MiB", "1.50 GiB", "1 TiB"],
  );
  assert.deepEqual(
    [999, 1500, 7.5e9].map((size) => bytesText(size, 1000)),
    ["999 B", "1.50 kB", "7.50 GB"],
  );
});

test("frames come in pages around the moment, and the end is on the last one", () => {
  assert.deepEqual(pageOf(14, 3), { first: 0, end: 14 });
  assert.deepEqual(pageOf(126, 70), { first: 64, end: 126 });
  assert.deepEqual(pageOf(126, 126), { first: 64, end: 126 });
  assert.deepEqual(pageOf(0, 0), { first: 0, end: 0 });
});

test("an algorithm is asked for what it takes, the quickest for what any does", () => {
  const offers = {
    algorithms: { attention: { ring: ["split", "mask"], ulysses: ["mask"] }, reduce: { tree: [] } },
    choices: {},
  };
  const state = { ...DEFAULTS, collective: "attention", split: "contiguous", mask: "" };
  assert.deepEqual(chosenOf(state, "ring", offers), { split: "contiguous" });
  assert.deepEqual(chosenOf(state, "ulysses", offers), {});
  assert.deepEqual(chosenOf(state, "", offers), { split: "contiguous" });
  assert.deepEqual(chosenOf({ ...state, collective: "reduce" }, "", offers), {});
  assert.deepEqual(chosenOf({ ...state, collective: "none" }, "ring", offers), {});
});
