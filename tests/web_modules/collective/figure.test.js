import assert from "node:assert/strict";
import { test } from "node:test";

import { Figure, along, between } from "../../../src/serried/views/web/static/collective/figure.js";
import { hueOf } from "../../../src/serried/views/web/static/collective/hues.js";

/** @param {number} count @param {number} perNode */
function places(count, perNode) {
  const ranks = Array.from({ length: count }, (_, rank) => ({
    rank,
    ranks: 1,
    node: Math.floor(rank / perNode),
    nodes: 1,
  }));
  const nodes = [...new Set(ranks.map(({ node }) => node))];
  return [...ranks, ...nodes.map((node) => ({ rank: -1, ranks: 0, node, nodes: 1 }))];
}

test("all ranks and all blocks stand within the box, at every size", () => {
  for (const count of [1, 2, 7, 64])
    for (const width of [240, 360, 628, 1200])
      for (const blocks of [1, 64, 512]) {
        const figure = new Figure(places(count, 8), blocks, width, 300);
        const [first, last] = [figure.x[0], figure.x[count - 1]];
        assert.ok(first - figure.column / 2 >= 0 && last + figure.column / 2 <= width);
        assert.ok(figure.rows > 0 && figure.bottom <= 300, `${count} ${width} ${blocks}`);
      }
});

test("nodes stand apart, ranks of a node together, and a switch in their middle", () => {
  const figure = new Figure(places(8, 4), 8, 600, 300);
  const gaps = [...figure.x.slice(0, 8)].map((x, i, all) => (i ? x - all[i - 1] : 0)).slice(1);
  assert.ok(gaps[3] > gaps[2]);
  assert.equal(new Set(gaps.filter((_, i) => i !== 3).map(Math.round)).size, 1);
  assert.equal(figure.x[8], (figure.x[0] + figure.x[3]) / 2);
  assert.deepEqual(figure.nodes(), [
    { first: 0, last: 3, node: 0 },
    { first: 4, last: 7, node: 1 },
  ]);
});

test("what travels leaves at one end of a link and arrives at the other", () => {
  const figure = new Figure(places(8, 4), 8, 600, 300);
  for (const [source, target] of [
    [0, 1],
    [7, 0],
    [2, 8],
  ]) {
    const arc = figure.arc(source, target);
    assert.deepEqual(along(arc, 0), arc.from);
    assert.deepEqual(along(arc, 1), arc.to);
    assert.ok(along(arc, 0.5).y >= 0);
  }
  assert.notDeepEqual(along(figure.arc(0, 1), 0.5), along(figure.arc(1, 0), 0.5));
  const [from, to] = [
    { x: 0, y: 0 },
    { x: 8, y: 4 },
  ];
  assert.deepEqual(between(from, { x: 4, y: 9 }, to, 0), from);
  assert.deepEqual(between(from, { x: 4, y: 9 }, to, 1), to);
});

test("rows stand for all blocks, each for one where they fit", () => {
  const few = new Figure(places(4, 4), 4, 600, 300);
  assert.deepEqual([few.rows, few.blocksOf(2, 4)], [4, [2, 3]]);
  const many = new Figure(places(4, 4), 1000, 600, 300);
  const ends = Array.from({ length: many.rows }, (_, row) => many.blocksOf(row, 1000));
  assert.equal(ends[0][0], 0);
  assert.equal(ends[many.rows - 1][1], 1000);
  ends.slice(1).forEach(([first], i) => assert.equal(first, ends[i][1]));
});

test("each owner has a hue of its own", () => {
  for (const count of [2, 8, 64])
    assert.equal(new Set(Array.from({ length: count }, (_, i) => hueOf(i, count))).size, count);
});
