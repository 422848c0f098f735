import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Store } from "../../../src/serried/views/web/static/base/store.js";

/** The addresses of the browser's history, the newest last. @type {string[]} */
let steps = [];

beforeEach(() => {
  steps = ["/page"];
  Object.assign(globalThis, {
    location: { pathname: "/page" },
    history: {
      pushState: (/** @type {unknown} */ _, /** @type {string} */ __, /** @type {string} */ to) =>
        steps.push(to),
      replaceState: (
        /** @type {unknown} */ _,
        /** @type {string} */ __,
        /** @type {string} */ to,
      ) => (steps[steps.length - 1] = to),
    },
  });
});

function made() {
  return new Store(
    { tp: "1", seen: "" },
    ({ tp, seen }) => (tp === "1" ? "" : `tp=${tp}`) + seen,
    () => "",
  );
}

test("what is typed into one field is one step back", () => {
  const store = made();
  store.step({ tp: "2" }, "tp");
  store.step({ tp: "24" }, "tp");
  assert.deepEqual(steps, ["/page", "?tp=24"]);
  store.leaveField();
  store.step({ tp: "8" }, "tp");
  assert.deepEqual(steps, ["/page", "?tp=24", "?tp=8"]);
});

test("a state of nothing but defaults has a bare address", () => {
  const store = made();
  store.step({ tp: "2" });
  store.step({ tp: "1" });
  assert.deepEqual(steps, ["/page", "?tp=2", "/page"]);
});

test("a change of the view is written in place, and a step takes it along", () => {
  const store = made();
  store.step({ tp: "2" });
  store.soon({ seen: "&map=3" });
  assert.deepEqual(steps, ["/page", "?tp=2"]);
  store.write();
  assert.deepEqual(steps, ["/page", "?tp=2&map=3"]);
  assert.equal(store.timer, null);
});

test("a change that is set is not written by itself", () => {
  const store = made();
  store.set({ tp: "4" });
  assert.deepEqual([store.state.tp, steps], ["4", ["/page"]]);
});
