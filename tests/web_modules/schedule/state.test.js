import assert from "node:assert/strict";
import { test } from "node:test";

import {
  DEFAULTS,
  readState,
  writeState,
} from "../../../src/serried/views/web/static/desk/state/fields.js";
import {
  MOST_NAMES,
  PRESETS,
  QUESTION_FIELDS,
  SCHEDULE_DEFAULTS,
  fieldOfWord,
  isShown,
  movedUp,
  namesOf,
  presetFields,
  presetOf,
  scheduleQuestion,
  toggledShow,
  withName,
} from "../../../src/serried/views/web/static/schedule/state.js";

const state = { ...DEFAULTS, view: "schedule" };

test("the view is part of the address, and only what differs is written", () => {
  assert.equal(writeState(state), "view=schedule");
  const other = { ...state, name: "zbv,1f1b", latency: "1/2", window: "1,2.5", action: "0:3F2" };
  assert.deepEqual(readState(`?${writeState(other)}`), other);
});

test("names stand once each, and not too many", () => {
  assert.deepEqual(namesOf({ ...state, name: " 1f1b,zbv,,1f1b " }), ["1f1b", "zbv"]);
  const many = Array.from({ length: 20 }, (_, i) => `s${i}`).join(",");
  assert.equal(namesOf({ ...state, name: many }).length, MOST_NAMES);
});

test("a name is added at the end, and moved up", () => {
  assert.equal(withName(["a", "b"], "c"), "a,b,c");
  assert.equal(withName(["a", "b"], "a"), "b,a");
  assert.equal(movedUp(["a", "b", "c"], 2), "a,c,b");
  assert.equal(movedUp(["a", "b", "c"], 0), "b,c,a");
});

test("a question says what was given, and the job's own stages where none were", () => {
  const words = new URLSearchParams(
    scheduleQuestion({ ...state, pp: "8", group: "4" }, { name: "zbv" }, "zh"),
  );
  assert.deepEqual(
    [
      words.get("name"),
      words.get("stages"),
      words.get("group"),
      words.get("lang"),
      words.has("chunks"),
    ],
    ["zbv", "8", "4", "zh", false],
  );
  const own = scheduleQuestion({ ...state, stages: "2", pp: "8" }, { name: "zbv" }, "en");
  assert.equal(new URLSearchParams(own).get("stages"), "2");
});

test("a question leaves out what its schedule has no choice of", () => {
  const typed = { ...state, pp: "8", chunks: "4", group: "4" };
  const asked = (/** @type {number | null} */ chunks, /** @type {boolean} */ takes_group) => {
    const words = new URLSearchParams(
      scheduleQuestion(typed, { name: "any", chunks, takes_group }, "en"),
    );
    return [words.has("chunks"), words.has("group")];
  };
  assert.deepEqual(asked(1, false), [false, false]);
  assert.deepEqual(asked(null, false), [true, false]);
  assert.deepEqual(asked(null, true), [true, true]);
});

test("a refusal leads to the field that it is about, if the form has it", () => {
  assert.equal(fieldOfWord("group"), "group");
  assert.equal(fieldOfWord("1f2b"), "");
});

test("a preset sets every field of the form, and is known again", () => {
  for (const preset of Object.keys(PRESETS)) {
    const fields = presetFields(preset);
    for (const field of QUESTION_FIELDS) assert.equal(typeof fields[field], "string");
    assert.equal(presetOf({ ...state, latency: "9", ...fields }), preset);
  }
  assert.equal(presetOf({ ...state, ...SCHEDULE_DEFAULTS, name: "hanayo" }), "");
});

test("what is drawn beside the actions is put in and taken out", () => {
  assert.equal(isShown(state, "strips"), true);
  const both = { ...state, show: toggledShow(state, "path") };
  assert.equal(both.show, "strips,path");
  assert.equal(toggledShow(both, "strips"), "path");
});
