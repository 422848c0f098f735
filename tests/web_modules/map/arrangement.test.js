import assert from "node:assert/strict";
import { test } from "node:test";

import {
  byNode,
  readCube,
  withAxis,
  writeCube,
} from "../../../src/serried/views/web/static/map/arrangement.js";
import { sceneOf } from "./scenes.js";

const names = (scene) => byNode(scene).map(({ name }) => name);

test("nodes stand in bands of the stages that hold them whole", () => {
  assert.deepEqual(names(sceneOf({ pp: 4, dp: 8, tp: 8 })), ["stage", "node", "cell"]);
});

test("nodes that hold several stages stand in no band", () => {
  assert.deepEqual(names(sceneOf({ pp: 4, tp: 4 })), ["node", "cell"]);
});

test("where the pipeline is not the slowest axis, bands are the places along that one", () => {
  const levels = byNode(sceneOf({ dp: 4, pp: 4, tp: 8 }));
  assert.deepEqual(
    levels.map(({ name }) => name),
    ["band", "node", "cell"],
  );
  assert.deepEqual(levels[0].axes, [{ axis: "dp", size: 4 }]);
});

test("racks that hold nodes whole are around them, within stages that hold racks", () => {
  const scene = sceneOf({ pp: 2, dp: 16, tp: 8 });
  scene.domain = scene.node.map((node) => Math.floor(node / 4));
  assert.deepEqual(names(scene), ["stage", "domain", "node", "cell"]);
  const levels = byNode(scene);
  assert.deepEqual(
    levels.map(({ count }) => count),
    [2, 4, 4, 8],
  );
});

test("racks across stages have their own edges no longer", () => {
  const scene = sceneOf({ pp: 2, dp: 16, tp: 8 });
  scene.domain = scene.node.map((node) => Math.floor(node / 6));
  assert.deepEqual(names(scene), ["stage", "node", "cell"]);
});

const scene = sceneOf({ pp: 4, dp: 4, tp: 8 });
for (const [text, roles] of [
  ["", { rows: ["pp"], columns: ["tp"], blocks: ["dp"] }],
  ["dense:", { rows: ["pp"], columns: ["tp"], blocks: ["dp"] }],
  ["dp,pp/tp/", { rows: ["dp", "pp"], columns: ["tp"], blocks: [] }],
  ["pp/zz/", { rows: ["pp"], columns: [], blocks: ["dp", "tp"] }],
  ["pp,pp/tp/dp", { rows: ["pp"], columns: ["tp"], blocks: ["dp"] }],
]) {
  test(`the cube "${text}" is read, and what it leaves out is among its blocks`, () => {
    assert.deepEqual(readCube(text, scene), { mesh: "dense", roles });
  });
}

test("a cube is written as it is read, the usual one as nothing", () => {
  for (const text of ["", "dp,pp/tp/", "pp//dp,tp"])
    assert.equal(writeCube(readCube(text, scene), scene), text);
});

test("an axis in another role stands there in the mesh's order", () => {
  const cube = withAxis(readCube("", scene), "dp", "rows", scene);
  assert.deepEqual(cube.roles, { rows: ["pp", "dp"], columns: ["tp"], blocks: [] });
});

test("without a mesh that holds the world there is no cube", () => {
  assert.equal(readCube("", { ...scene, meshes: [] }), null);
});
