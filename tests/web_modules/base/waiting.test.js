import assert from "node:assert/strict";
import { test } from "node:test";

import { Waiting } from "../../../src/serried/views/web/static/base/waiting.js";

test("an answer counts as awaited until it is there", async () => {
  const waiting = new Waiting(assert.ifError);
  let arrive = () => {};
  const both = [
    waiting.until(Promise.resolve()),
    waiting.until(new Promise((done) => (arrive = () => done(null)))),
  ];
  assert.equal(waiting.isBusy, true);
  await both[0];
  assert.equal(waiting.isBusy, true);
  arrive();
  await both[1];
  assert.equal(waiting.isBusy, false);
});

test("what failed is told, and is no longer awaited", async () => {
  /** @type {unknown[]} */
  const failed = [];
  const waiting = new Waiting((error) => failed.push(error));
  await waiting.until(Promise.reject(new Error("no answer")));
  assert.deepEqual(failed.map(String), ["Error: no answer"]);
  assert.equal(waiting.isBusy, false);
});
