import assert from "node:assert/strict";
import { test } from "node:test";

import { Playback } from "../../../src/serried/views/web/static/base/playback.js";

/** @param {...number[]} starts */
function playback(...starts) {
  const clock = new Playback();
  clock.take(starts);
  return clock;
}

test("a step goes to the next border of any algorithm in view, and back", () => {
  const clock = playback([2, 4], [3, 6]);
  const ways = [1, 1, 1, 1, 1, -1, -1, -1, -1, -1];
  const times = ways.map((way) => {
    clock.step(/** @type {1 | -1} */ (way));
    return clock.time;
  });
  assert.deepEqual(times, [2, 3, 4, 6, 6, 4, 3, 2, 0, 0]);
});

test("it runs to the end, stands there, and begins again", () => {
  const clock = playback([1, 2]);
  clock.toggle();
  clock.pass(clock.lasts() / 2);
  assert.equal(clock.time, 1);
  clock.pass(clock.lasts());
  assert.deepEqual([clock.time, clock.isPlaying], [2, false]);
  clock.toggle();
  assert.deepEqual([clock.time, clock.isPlaying], [0, true]);
});

test("twice the speed takes half as long, and nothing moves while it is held", () => {
  const clock = playback([1, 2, 3, 4]);
  const usual = clock.lasts();
  clock.speed = 2;
  assert.equal(clock.lasts(), usual / 2);
  clock.pass(1);
  assert.equal(clock.time, 0);
});

test("one rank has nothing to play", () => {
  const clock = playback([]);
  clock.toggle();
  clock.step(1);
  assert.deepEqual([clock.isPlaying, clock.time, clock.total], [false, 0, 0]);
});

test("a moment stays within what is shown when that becomes shorter", () => {
  const clock = playback([5, 10]);
  clock.seek(10);
  clock.take([[4]]);
  assert.equal(clock.time, 4);
});
