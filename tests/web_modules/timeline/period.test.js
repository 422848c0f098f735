import assert from "node:assert/strict";
import { test } from "node:test";

import { partsOf } from "../../../src/serried/views/web/static/timeline/period.js";

const tracks = {
  actions: new Map(
    [
      ["F", "blue"],
      ["SPAN", "green"],
      ["ALL_REDUCE", "violet"],
      ["OPTIMIZER", "red"],
    ].map(([name, colour], number) => [number, { name, colour }]),
  ),
};
const rank = {
  period_us: 100,
  data_us: 10,
  compute_us: 40,
  communication_us: 30,
  optimizer_us: 5,
  before_us: 8,
  gaps_us: 7,
};

test("parts of a period add up to it, in the colours of their actions", () => {
  const parts = partsOf(tracks, rank);
  const sum = parts.reduce((whole, { us }) => whole + us, 0);
  assert.equal(sum, rank.period_us);
  assert.deepEqual(
    parts.map(({ name, colour }) => [name, colour]),
    [
      ["data", "green"],
      ["compute", "blue"],
      ["communication", "violet"],
      ["optimizer", "red"],
      ["unrecorded", ""],
    ],
  );
});
