import assert from "node:assert/strict";
import { test } from "node:test";

import { acronyms } from "../../../src/serried/views/web/static/learn/acronyms.js";

const keys = (/** @type {string} */ text) => acronyms(text).map(({ key }) => key);

test("acronyms are found in the order of the text", () => {
  assert.deepEqual(keys("DP 2, ETP 2: MFU 41 %, 422 TFLOP/s"), ["dp", "etp", "mfu", "flops"]);
});

test("numbers may follow an acronym, letters may not", () => {
  assert.deepEqual(keys("TP0 and ZeRO-3, in a DPO of APP"), ["tp", "zero"]);
});

test("Chinese runs on around an acronym", () => {
  assert.deepEqual(keys("沿TP切分，用ZeRO和NVLink"), ["tp", "zero", "nvlink"]);
});

test("the longer of two acronyms is meant", () => {
  assert.deepEqual(keys("ETP TFLOP/s HSDP"), ["etp", "flops", "fsdp"]);
});
