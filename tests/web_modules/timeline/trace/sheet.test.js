import assert from "node:assert/strict";
import { test } from "node:test";

import { readPayload } from "../../../../src/serried/views/web/static/base/payload.js";
import { colouringOf } from "../../../../src/serried/views/web/static/timeline/trace/colours.js";
import { readSheet } from "../../../../src/serried/views/web/static/timeline/trace/sheet.js";
import { packed } from "../../packed.js";

const ints = (...values) => Int32Array.from(values);
const tracks = {
  actions: new Map([
    [1, { number: 1, colour: "#f00000" }],
    [2, { number: 2, colour: "#0000b0" }],
  ]),
  classes: ["#f00000", "#0000b0"],
  scales: { lateness: [10, 20] },
};
const byAction = colouringOf(tracks, "");

/**
 * Two tracks over [0, 400): track 3 with the spans 70 and 71, track 5 as four buckets of 100 ns.
 */
function sheet() {
  const header = {
    schema: "serried.payload/1",
    colour: "",
    bucket_ns: 100,
    start_ns: 0,
    end_ns: 400,
    by: "dp",
  };
  const columns = {
    "exact:track": ints(3),
    "exact:bounds": ints(0, 2),
    "exact:first": ints(70),
    kind: ints(1, 2),
    stage: ints(0, 0),
    microbatch: ints(4, -1),
    step: ints(0, 1),
    peer: ints(-1, -1),
    name: ints(-1, -1),
    start_ns: Float64Array.of(10, 200),
    end_ns: Float64Array.of(60, 390),
    "value:lateness": Float64Array.of(15, NaN),
    "track:number": ints(5),
    "track:shares": Uint8Array.of(255, 0, 0, 255, 51, 51, 0, 0),
    "group:number": ints(2),
    "group:shares": Uint8Array.of(255, 0, 255, 0, 255, 0, 255, 0),
  };
  return readSheet(readPayload(packed(header, columns)), byAction);
}

test("spans that were sent are found by time and carry the ids of the whole trace", () => {
  const piece = sheet().tracks.get(3);
  assert.equal(piece.at(30, 0), 70);
  assert.equal(piece.at(195, 10), 71);
  assert.equal(piece.at(130, 5), -1);
});

test("shares of equal pixels are exact sums of the buckets", () => {
  const piece = sheet().tracks.get(5);
  const near = (found, wanted) =>
    found.forEach((share, i) => assert.ok(Math.abs(share - wanted[i]) < 1e-6, `${found}`));
  near(piece.shares(0, 400, 4), [1, 0, 0, 1, 0.2, 0.2, 0, 0]);
  near(piece.shares(0, 400, 2), [0.5, 0.5, 0.1, 0.1]);
  near(piece.shares(50, 150, 1), [0.5, 0.5]);
  near(piece.shares(0, 200, 4), [1, 0, 1, 0, 0, 1, 0, 1]);
});

test("outside of what was sent there is nothing", () => {
  assert.deepEqual([...sheet().tracks.get(5).shares(400, 600, 2)], [0, 0, 0, 0]);
});

test("a group has shares of its own", () => {
  assert.deepEqual([...sheet().groups.get("dp:2").shares(0, 400, 1)], [1, 0]);
});

test("a span's class is its action's colour, its turn, or its place on a scale", () => {
  const { spans } = sheet().tracks.get(3);
  assert.deepEqual([...spans.classes(byAction)], [0, 1]);
  assert.deepEqual([...spans.classes(colouringOf(tracks, "microbatch"))], [5, 0]);
  assert.deepEqual([...spans.classes(colouringOf(tracks, "step"))], [1, 2]);
  assert.deepEqual([...spans.classes(colouringOf(tracks, "lateness"))], [2, 0]);
});
