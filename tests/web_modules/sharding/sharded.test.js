import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { eventOf, wordsOf } from "../../../src/serried/views/web/static/sharding/state.js";
import {
  heldAfter,
  replay,
  sentAfter,
  total,
} from "../../../src/serried/views/web/static/sharding/sharded.js";

/** Steps of 16 parameters in two layers over 4 ranks, by stage; a test in Python keeps them. */
const STEPS = JSON.parse(readFileSync(new URL("steps.json", import.meta.url), "utf-8"));
const BYTES = 2;
const RANKS = 4;

test("what is drawn of each layer adds up to the bytes that Python says are held", () => {
  for (const [stage, step] of Object.entries(STEPS)) {
    const isCut = Number(stage) >= 2;
    for (let done = 0; done <= step.events.length; done++) {
      const { gathered, gradients } = replay(step, isCut, done);
      const held = heldAfter(step, done);
      const sum = (/** @type {(layer: number) => number} */ bytes) =>
        step.layers.reduce((all, size, layer) => all + size * bytes(layer), 0);
      const where = `stage ${stage}, ${done} events`;
      assert.equal(
        sum((layer) => (gathered[layer] ? BYTES : 0)),
        held.gathered,
        where,
      );
      const shares = { "": 0, part: BYTES / RANKS, whole: BYTES };
      const drawn = sum((layer) => shares[gradients[layer]]);
      // In a later microbatch the part of those before it stands beside the whole gradient.
      const parts = sum((layer) => (gradients[layer] === "whole" && isCut ? BYTES / RANKS : 0));
      assert.ok([drawn, drawn + parts].includes(held.gradients), where);
    }
  }
});

test("all is sent once all events are over, and nothing before", () => {
  for (const step of Object.values(STEPS)) {
    assert.equal(sentAfter(step, 0), 0);
    assert.equal(sentAfter(step, step.events.length), step.sent);
  }
});

test("most is held after the event that Python names", () => {
  for (const step of Object.values(STEPS)) {
    const sums = step.events.map((event) => total(event.held));
    assert.equal(Math.max(...sums), sums[step.peak]);
  }
});

test("a moment is a number of events, and nonsense is the beginning", () => {
  assert.deepEqual(
    ["", "x", "-1", "3", "99"].map((text) => eventOf(text, 7)),
    [0, 0, 0, 3, 7],
  );
});

test("the server is asked for what is filled in", () => {
  const state = { sharded: "1", parameters: "7B", precision: "", layers: "2", accumulated: "4" };
  assert.deepEqual(wordsOf({ ...state, event: "" }), {
    parameters: "7B",
    layers: "2",
    microbatches: "4",
  });
});
