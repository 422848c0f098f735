// Heat: values between the least and the most, their colours and their words.

import assert from "node:assert/strict";
import test from "node:test";

import { SCHEMA } from "../../../src/serried/views/web/static/base/payload.js";
import { Heat, isPale, rampColour } from "../../../src/serried/views/web/static/map/heat.js";
import { packed } from "../packed.js";

const RAMPS = { light: ["#ffffff", "#808080", "#000000"], dark: ["#000000", "#808080", "#ffffff"] };
const header = (more) => ({
  schema: SCHEMA,
  kind: "heat",
  figure: "busy",
  figures: ["busy"],
  unit: "share",
  least: 0.2,
  median: 0.4,
  most: 0.6,
  num_ranks: 2,
  farthest: [
    { rank: 0, value: 0.2 },
    { rank: 1, value: 0.4001 },
  ],
  colours: RAMPS,
  ...more,
});
const heat = (more = {}) =>
  new Heat(packed(header(more), { value: Float64Array.of(0.2, 0.6, NaN) }));

test("the least and the most have the ends of the ramp, light or dark", () => {
  assert.deepEqual(
    [0, 1].map((rank) => heat().colour(rank, false)),
    [0xffffff, 0x000000],
  );
  assert.deepEqual(
    [0, 1].map((rank) => heat().colour(rank, true)),
    [0x000000, 0xffffff],
  );
});

test("a rank without a value has no colour", () => {
  assert.deepEqual(
    [2, 99].map((rank) => heat().colour(rank, false)),
    [-1, -1],
  );
});

test("values have their unit, and a sign only where one is written", () => {
  assert.equal(heat().text(0.256), "25.6%");
  assert.equal(heat().text(-0.05), "−5.0%");
  assert.equal(heat().text(-0.0001), "0.0%");
  assert.equal(heat().difference(0.2), "−20.0%");
  assert.equal(heat({ unit: "ns", median: 1e6 }).difference(3e6), "+2.000 ms");
});

test("only ranks that differ by more than is written stand out", () => {
  assert.deepEqual(
    heat().outliers.map(({ rank }) => rank),
    [0],
  );
});

test("equal values are all at the start of the ramp", () => {
  assert.equal(heat({ least: 1, most: 1 }).level(1), 0);
});

test("a ramp is even between its stops", () => {
  assert.equal(rampColour(RAMPS.light, 0.25), 0xc0c0c0);
  assert.equal(rampColour(RAMPS.light, -3), 0xffffff);
  assert.equal(rampColour(RAMPS.light, 9), 0x000000);
});

test("dark letters go on pale colours", () => {
  assert.deepEqual([0xffffff, 0x4ec29c, 0x3e2d76].map(isPale), [true, true, false]);
});

test("a scale that is named says what colours span, else that of the figure's own", () => {
  const scales = {
    zero: { low: 0, high: 0.6, is_balanced: false },
    median: { low: 0.2, high: 0.6, is_balanced: true },
  };
  const one = heat({ scales, scale: "zero", balance: RAMPS });
  assert.deepEqual([one.level(0.3), one.span.high], [0.5, 0.6]);
  one.measure("median");
  assert.ok(Math.abs(one.level(0.4) - 0.5) < 1e-9);
  one.measure("nothing of the kind");
  assert.equal(one.level(0.3), 0.5);
});
