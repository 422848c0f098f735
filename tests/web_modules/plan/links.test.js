import assert from "node:assert/strict";
import { test } from "node:test";

import {
  evened,
  linksBetween,
  linksWithin,
  scaleOf,
  widthOf,
} from "../../../src/serried/views/web/static/plan/links.js";

/** @typedef {import("../../../src/serried/views/web/static/plan/links.js").Flow} Flow */

/** @param {Partial<Flow> & {hop: Int32Array}} told @returns {Flow} */
function flow(told) {
  return {
    ...{ kind: "tp", dim: "tp", groups: "tp", collectives: [], ranks: 2 },
    ...{ pattern: /** @type {const} */ ("ring"), link_bytes: 10 },
    ...{ link_bytes_per_s: 1, within_bytes: 0, across_bytes: 0, ink: "", ink_on_dark: "" },
    ...told,
  };
}
const nodeOf = (/** @type {number} */ rank) => Math.floor(rank / 4);
/** Eight ranks on two nodes: pairs beside one another, and a ring over both nodes. */
const PAIRS = flow({ hop: Int32Array.of(1, -1, 1, -1, 1, -1, 1, -1) });
const CHAIN = flow({ kind: "pp", pattern: "chain", hop: Int32Array.of(4, 4, 4, 4, 0, 0, 0, 0) });

test("links between nodes are added up, and stand apart from those within", () => {
  const links = linksBetween([PAIRS, CHAIN], nodeOf, nodeOf);
  const told = links.map(({ across, bytes, flow: of, from, to }) => [from, to, of, across, bytes]);
  assert.deepEqual(
    told.sort(
      (one, other) => Number(one[2]) - Number(other[2]) || Number(one[0]) - Number(other[0]),
    ),
    [
      [0, 0, 0, false, 40],
      [1, 1, 0, false, 40],
      [0, 1, 1, true, 40],
    ],
  );
});

test("without a plan all links are as wide, however many run as one", () => {
  const widths = evened(linksBetween([PAIRS, CHAIN], nodeOf, nodeOf)).map(({ bytes }) => bytes);
  assert.deepEqual(widths, [1, 1, 1]);
});

test("what goes from each to each is counted by pairs", () => {
  const all = flow({ pattern: "all", ranks: 8, hop: Int32Array.of(1, 1, 1, 1, 1, 1, 1, -7) });
  const links = linksBetween([all], nodeOf, nodeOf);
  const bytes = Object.fromEntries(links.map((link) => [`${link.from}${link.to}`, link.bytes]));
  // Four ranks a node: 12 ways inside each, 32 between both.
  assert.deepEqual(bytes, { "00": 120, 11: 120, "01": 320 });
});

test("one node's groups stand for all, whole", () => {
  const ring = flow({ hop: Int32Array.of(2, 2, 2, 2, 2, 2, -6, -6), ranks: 4 });
  const spots = (/** @type {number} */ rank) => Math.floor(rank / 2);
  const links = linksBetween([ring], spots, spots, [0, 1]);
  assert.equal(links.length, 4);
  const one = linksBetween([ring], spots, spots, [2]);
  assert.ok(one.every(({ bytes }) => bytes === 10) && one.length === 4);
  const chain = flow({ pattern: "chain", hop: Int32Array.of(2, 2, 2, 2, 2, 2, 0, 0) });
  assert.equal(linksBetween([chain], spots, spots, [5]).length, 3, "before and after the rank");
});

test("two ranks that send to one another have one link, and only those of a box have any", () => {
  const links = linksWithin([PAIRS, CHAIN], nodeOf, nodeOf, (rank) => rank < 4);
  assert.deepEqual(
    links.map(({ bytes, from, to }) => [from, to, bytes]),
    [
      [0, 1, 20],
      [2, 3, 20],
    ],
  );
  const own = linksWithin([PAIRS], nodeOf, nodeOf, () => true, [7]);
  assert.deepEqual(
    own.map(({ from, to }) => [from, to]),
    [[6, 7]],
  );
});

test("a width's square is in proportion to the bytes, as the scale says", () => {
  assert.equal(widthOf(25, 100, 10), 5);
  assert.deepEqual(
    scaleOf(1600, 8).map(({ bytes, width }) => [bytes, width]),
    [
      [1600, 8],
      [400, 4],
      [100, 2],
    ],
  );
});
