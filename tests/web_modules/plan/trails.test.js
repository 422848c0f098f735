import assert from "node:assert/strict";
import { test } from "node:test";

import { paintTrails } from "../../../src/serried/views/web/static/plan/trails.js";

/** Paints no link at all, and returns what the canvas was asked for. */
function asked(spared) {
  const told = [];
  const context = new Proxy(
    {},
    {
      get:
        (_, name) =>
        (...given) =>
          told.push([name, ...given]),
      set: () => true,
    },
  );
  const none = { between: [], bars: [], within: [] };
  paintTrails({ ...none, context, width: 300, height: 200, spared });
  return told;
}

test("links are cut out where a name or a mark stands, and go over all else", () => {
  const names = [{ x: 5, y: 92, width: 40, height: 16 }];
  const marks = [{ x: 80, y: 100, radius: 9 }];
  const told = asked({ names, marks });
  assert.deepEqual(
    told.filter(([name]) => ["rect", "arc", "clip"].includes(name)),
    [
      ["rect", 5, 92, 40, 16],
      ["rect", 0, 0, 300, 200],
      ["arc", 80, 100, 9, 0, 2 * Math.PI],
      ["clip", "evenodd"],
    ],
  );
  assert.ok(!asked({ names: [], marks: [] }).some(([name]) => name === "clip"));
});
