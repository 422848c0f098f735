import assert from "node:assert/strict";
import { test } from "node:test";

import { litBy } from "../../../src/serried/views/web/static/base/lit.js";
import { DEFAULTS } from "../../../src/serried/views/web/static/desk/state/fields.js";
import { pinWords, pinnedTarget } from "../../../src/serried/views/web/static/desk/state/pins.js";

const kind = (name, lists, world) => {
  const group = new Int32Array(world).fill(-1);
  lists.forEach((ranks, i) => ranks.forEach((rank) => group[rank] === -1 && (group[rank] = i)));
  const bounds = [0];
  for (const ranks of lists) bounds.push(bounds.at(-1) + ranks.length);
  const overlaps = lists.flat().length > new Set(lists.flat()).size;
  return {
    kind: name,
    label: name,
    members: Int32Array.from(lists.flat()),
    bounds: Int32Array.from(bounds),
    group,
    overlaps,
  };
};

const scene = (...kinds) => ({
  worldSize: 6,
  kinds,
  members(i, g) {
    return kinds[i].members.subarray(kinds[i].bounds[g], kinds[i].bounds[g + 1]);
  },
  numGroups: (i) => kinds[i].bounds.length - 1,
});

const pairs = kind(
  "tp",
  [
    [0, 1],
    [2, 3],
    [4, 5],
  ],
  6,
);
const ends = kind(
  "embd",
  [
    [0, 4],
    [1, 5],
  ],
  6,
);
const crossing = kind(
  "gqa",
  [
    [0, 1, 2],
    [2, 3],
    [3, 5],
  ],
  6,
);

const lists = (lit) => lit.byKind.map((ranks) => [...ranks]);

test("a rank lights its own group of every kind", () => {
  const lit = litBy(scene(pairs, ends), { type: "rank", rank: 4 });
  assert.deepEqual(lists(lit), [
    [4, 5],
    [0, 4],
  ]);
  assert.deepEqual([...lit.ranks], [0, 4, 5]);
});

test("a rank in no group of a kind lights only itself there", () => {
  const lit = litBy(scene(ends), { type: "rank", rank: 2 });
  assert.deepEqual(lists(lit), [[]]);
  assert.deepEqual([...lit.ranks], [2]);
});

test("a rank in several groups of a kind lights them all", () => {
  assert.deepEqual(lists(litBy(scene(crossing), { type: "rank", rank: 3 })), [[2, 3, 5]]);
});

test("a group lights its ranks in its kind alone", () => {
  const lit = litBy(scene(pairs, ends), { type: "group", kind: 1, group: 1 });
  assert.equal(lit.rank, -1);
  assert.deepEqual(lists(lit), [[], [1, 5]]);
});

test("what lies outside the layout lights nothing", () => {
  assert.equal(litBy(scene(pairs), null), null);
  assert.equal(litBy(scene(pairs), { type: "rank", rank: 6 }), null);
  assert.equal(litBy(scene(pairs), { type: "group", kind: 0, group: 3 }), null);
});

const pinned = (target) =>
  pinnedTarget(
    { ...DEFAULTS, ...pinWords(target, scene(pairs, ends), null) },
    scene(pairs, ends),
    null,
  );

test("what is pinned survives the way through the state", () => {
  for (const target of [
    { type: "rank", rank: 3 },
    { type: "group", kind: 1, group: 0 },
  ]) {
    assert.deepEqual(pinned(target), target);
  }
  assert.equal(pinned(null), null);
});

test("a pin on what is not there pins nothing", () => {
  for (const words of [
    { rank: "6" },
    { rank: "x" },
    { group: "tp:9" },
    { group: "dp:0" },
    { slice: "0" },
  ]) {
    assert.equal(pinnedTarget({ ...DEFAULTS, ...words }, scene(pairs), null), null);
  }
});

test("a group of all ranks lights all of them, and a large one those that are in it", () => {
  const all = kind("dp", [[5, 3, 1, 0, 2, 4]], 6);
  assert.deepEqual([...litBy(scene(all), { type: "rank", rank: 1 }).ranks], [0, 1, 2, 3, 4, 5]);
  const large = kind("dp", [[4, 0, 3]], 6);
  assert.deepEqual([...litBy(scene(large, pairs), { type: "rank", rank: 4 }).ranks], [0, 3, 4, 5]);
});
