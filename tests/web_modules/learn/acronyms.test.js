import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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

/** Words in capitals that name no idea of parallel training, which a card would explain. */
const PLAIN = new Set([
  ...["API", "CPU", "CSS", "CSV", "GPU", "GPUs", "HF", "HTML", "ID", "IDs", "JSON", "PNG", "SVG"],
  ...["URL", "FILE", "FOLDER", "KEY", "LAYERS", "MODULE", "RUN", "VALUE"],
]);

test("every acronym in the page's own words has a card, in both languages", () => {
  for (const language of ["en", "zh"]) {
    const file = `../../../src/serried/views/web/static/i18n/${language}.json`;
    const words = JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8"));
    for (const sentence of Object.values(words)) {
      const found = new Set(acronyms(sentence).map(({ word }) => word));
      const capitals = sentence.match(/(?<![A-Za-z0-9_/{])[A-Z]{2,}s?(?![A-Za-z_/}])/g) ?? [];
      const bare = capitals.filter((word) => !found.has(word) && !PLAIN.has(word));
      assert.deepEqual(bare, [], `${language}: ${sentence}`);
    }
  }
});
