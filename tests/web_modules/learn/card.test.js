import assert from "node:assert/strict";
import { test } from "node:test";

import { found } from "../../../src/serried/views/web/static/learn/card.js";

const TERMS = [
  { key: "tp", name: "TP", title: "Tensor parallelism (TP)", also: ["tensor parallel"], text: "" },
  {
    key: "etp",
    name: "ETP",
    title: "Expert tensor parallelism (ETP)",
    also: ["expert tensor parallel"],
    text: "The matrices of each expert",
  },
  { key: "bubble", name: "气泡", title: "气泡：流水线里的空等", also: ["bubble"], text: "" },
];

const keys = (/** @type {string} */ text) => found(TERMS, text).map(({ key }) => key);

test("an exact name comes before one that holds it", () => {
  assert.deepEqual(keys("tp"), ["tp", "etp"]);
  assert.deepEqual(keys("expert tensor parallel"), ["etp"]);
});

test("words are found whatever their case, spaces and language", () => {
  assert.deepEqual(keys("Expert-Tensor_Parallel"), ["etp"]);
  assert.deepEqual(keys("气泡"), ["bubble"]);
  assert.deepEqual(keys("matrices"), ["etp"]);
});

test("nothing asked shows all, and what nobody says shows none", () => {
  assert.equal(keys("").length, 3);
  assert.deepEqual(keys("photosynthesis"), []);
});
