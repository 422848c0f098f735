import assert from "node:assert/strict";
import { test } from "node:test";

import {
  rangeText,
  readRange,
  readRuns,
  runsText,
} from "../../../../src/serried/views/web/static/timeline/trace/range.js";
import { HEADING, Lines } from "../../../../src/serried/views/web/static/timeline/trace/rows.js";

const rows = Array.from({ length: 6 }, (_, rank) => ({
  track: rank,
  lanes: 1,
  rank,
  stage: 0,
  node: 0,
  pipeline: 0,
}));
const grouping = {
  by: "dp",
  label: "DP",
  of: Int32Array.of(0, 1, 0, 1, 2, 2),
  size: Int32Array.of(2, 2, 2),
  busy: new Float64Array(3),
  hasRest: true,
};

const shown = (lines) =>
  lines.lines.map(({ row, group, folded }) => (row ? row.rank : `${folded ? "▸" : "▾"}${group}`));

test("without a grouping there is a line per rank, as tall as there is room for", () => {
  const lines = new Lines(rows, null, new Set(), 120);
  assert.deepEqual(shown(lines), [0, 1, 2, 3, 4, 5]);
  assert.equal(lines.rowHeight, 20);
  assert.equal(lines.height, 120);
});

test("ranks stand under their groups, and a folded group is one line", () => {
  const lines = new Lines(rows, grouping, new Set([1]), 400);
  assert.deepEqual(shown(lines), ["▾0", 0, 2, "▸1", "▾2", 4, 5]);
  assert.equal(lines.of(3).group, 1);
  assert.equal(lines.of(3).row, null);
  assert.equal(lines.height, 3 * HEADING + 4 * lines.rowHeight);
});

test("a range is apart where its ranks stand apart; headings between them are bridged", () => {
  const lines = new Lines(rows, grouping, new Set([1]), 400);
  const at = (rank) => lines.of(rank);
  const whole = (first, last) => ({ top: at(first).top, bottom: at(last).top + at(last).high });
  assert.deepEqual(lines.stretches([0, 4]), [whole(0, 0), whole(4, 4)]);
  assert.deepEqual(lines.stretches([0, 2, 1, 3, 4]), [whole(0, 4)]);
  assert.deepEqual(lines.stretches([3]), [whole(3, 3)]);
  const unfolded = new Lines(rows, grouping, new Set(), 400);
  assert.equal(unfolded.stretches([2, 1]).length, 1);
  assert.equal(unfolded.stretches([0, 1]).length, 2);
});

test("the line at a height is the one that lies there, none below the last", () => {
  const lines = new Lines(rows, grouping, new Set(), 400);
  for (const line of lines.lines) {
    assert.equal(lines.at(line.top), line);
    assert.equal(lines.at(line.top + line.high - 0.5), line);
  }
  assert.equal(lines.at(lines.height), null);
  assert.equal(lines.at(-1), null);
});

test("going up and down passes over headings and stops at the ends", () => {
  const lines = new Lines(rows, grouping, new Set([1]), 400);
  assert.equal(lines.beside(0, 1), 2);
  assert.equal(lines.beside(2, 1), 4);
  assert.equal(lines.beside(4, -1), 2);
  assert.equal(lines.beside(5, 1), 5);
  assert.equal(lines.beside(0, -1), 0);
});

test("the ranks between two heights are those in view, folded ones with their group", () => {
  const lines = new Lines(rows, grouping, new Set([1]), 400);
  const folded = lines.of(1);
  assert.deepEqual(lines.ranksBetween(folded.top + 1, folded.top + 2), [1, 3]);
  assert.deepEqual(lines.ranksBetween(0, lines.height), [0, 1, 2, 3, 4, 5]);
});

test("runs of numbers are written and read back", () => {
  assert.equal(runsText([7, 0, 1, 2, 3]), "0-3,7");
  assert.deepEqual(readRuns("0-3,7", 100), [0, 1, 2, 3, 7]);
  assert.deepEqual(readRuns("5-900,x,-1", 8), [5, 6, 7]);
  assert.deepEqual(readRuns("", 8), []);
});

test("a range is written and read back, and nothing else is one", () => {
  const range = { start: 1200, end: 4800, ranks: [0, 1, 2, 6] };
  assert.equal(rangeText(range), "1200,4800,0-2,6");
  assert.deepEqual(readRange(rangeText(range), 8), range);
  for (const text of ["", "5,3,0", "1,2", "1,2,9", "a,b,0"]) assert.equal(readRange(text, 8), null);
});
