// One colour for each rank: by stage or by groups, in their order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { shadeOf } from "../../../src/serried/views/web/static/map/shade.js";
import { sceneOf } from "./scenes.js";

const RAMP = { light: ["#000000", "#ffffff"], dark: ["#ffffff", "#000000"] };
const kind = (dim, group, count) => ({
  dim,
  kind: dim,
  label: dim.toUpperCase(),
  group: Int32Array.from(group),
  bounds: new Int32Array(count + 1),
  order: RAMP,
});
const scene = sceneOf({ pp: 2, tp: 2 }, 4, {
  stageOrder: RAMP,
  kinds: [kind("tp", [0, 0, 1, 1], 2), kind("pp", [0, 1, 0, -1], 2)],
});

test("pipelines in view are shown by their stages unless something else is asked for", () => {
  const { by, count, colours } = shadeOf(scene, "", false);
  assert.deepEqual([by, count, ...colours], ["stage", 2, 0, 0, 0xffffff, 0xffffff]);
});

test("the first kind fills cells where no pipelines are in view", () => {
  const tp = { ...scene, kinds: scene.kinds.slice(0, 1) };
  assert.deepEqual([shadeOf(tp, "", false).by, shadeOf(tp, "", false).name], ["group", "TP"]);
});

test("groups that are asked for are coloured by number, ranks without one not at all", () => {
  const { name, colours } = shadeOf(scene, "group:pp", true);
  assert.deepEqual([name, ...colours], ["PP", 0xffffff, 0, 0xffffff, -1]);
});

test("a kind that is not in view leaves what is usual", () => {
  assert.equal(shadeOf(scene, "group:cp", false).by, "stage");
});
