// Imports of the page's modules run one way, those of types in comments included.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const STATIC = fileURLToPath(new URL("../../src/serried/views/web/static", import.meta.url));
/** The folders, each after those that it may import from; those of a line import not each other. */
const ORDER = [
  ["base"],
  ["base/canvas"],
  ["map", "timeline/trace", "schedule/model"],
  ["timeline/paint", "schedule/paint"],
  ["timeline", "schedule", "collective", "sharding", "plan", "diagnose", "learn"],
  ["desk/state"],
  ["desk/side", "desk/launch", "desk/map"],
  ["desk/opening"],
  ["desk"],
  ["export"],
  ["."],
];
const ROOMS = [
  "map",
  "timeline",
  "schedule",
  "collective",
  "sharding",
  "plan",
  "diagnose",
  "learn",
];
/** What joins the parts of one tab needs each of them. */
const MOST_IMPORTS = 17;
const MOST_IN_A_FOLDER = 20;

/** @type {Map<string, {runs: string[], types: string[]}>} */
const modules = new Map(
  readdirSync(STATIC, { recursive: true, encoding: "utf-8" })
    .filter((path) => path.endsWith(".js"))
    .map((path) => {
      const text = readFileSync(join(STATIC, path), "utf-8");
      const found = (/** @type {RegExp} */ pattern) =>
        [...text.matchAll(pattern)].map(([, to]) => normalize(join(dirname(path), to)));
      const runs = found(/^(?:import|export)\b[^;"]*? from "(\.[^"]+)"/gm);
      return [path, { runs, types: found(/\bimport\("(\.[^"]+)"\)/g) }];
    }),
);
const edges = [...modules].flatMap(([from, { runs, types }]) =>
  [...runs, ...types].map((to) => ({ from, to })),
);

/** @param {string} path */
function room(path) {
  return path.split("/")[0];
}

test("every folder has its place in the order", () => {
  assert.deepEqual(
    new Set(ORDER.flat()),
    new Set([...modules.keys()].map((path) => dirname(path))),
  );
});

test("a module imports from its own folder and from those before it", () => {
  const level = (/** @type {string} */ path) =>
    ORDER.findIndex((folders) => folders.includes(dirname(path)));
  const wrong = edges.filter(
    ({ from, to }) => dirname(from) !== dirname(to) && level(to) >= level(from),
  );
  assert.deepEqual(wrong, []);
});

test("map, timeline, schedule and the player know nothing of each other", () => {
  const wrong = edges.filter(
    ({ from, to }) =>
      ROOMS.includes(room(from)) && ROOMS.includes(room(to)) && room(from) !== room(to),
  );
  assert.deepEqual(wrong, []);
});

test("no module leads back to itself", () => {
  const done = new Set();
  /** @param {string} path @param {string[]} way */
  const walk = (path, way) => {
    assert.ok(!way.includes(path), [...way, path].join(" -> "));
    if (done.has(path)) return;
    const { runs, types } = modules.get(path) ?? { runs: [], types: [] };
    for (const next of new Set([...runs, ...types])) walk(next, [...way, path]);
    done.add(path);
  };
  for (const path of modules.keys()) walk(path, []);
});

test("no module needs many others, and no folder holds many", () => {
  const needy = [...modules].filter(([, { runs }]) => new Set(runs).size > MOST_IMPORTS);
  assert.deepEqual(
    needy.map(([path]) => path),
    [],
  );
  const folders = [...modules.keys()].map((path) => dirname(path));
  const large = ORDER.flat().filter(
    (folder) => folders.filter((each) => each === folder).length > MOST_IN_A_FOLDER,
  );
  assert.deepEqual(large, []);
});
