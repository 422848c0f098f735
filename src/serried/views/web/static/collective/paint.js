// Painting one moment of a collective: nodes and ranks, the blocks that they hold, the links of the
// step, and what is on its way along them.

import { along } from "./figure.js";
import { paintWork } from "./work.js";

/** @typedef {import("./execution.js").Link} Link */
/** @typedef {import("./figure.js").Figure} Figure */
/** @typedef {import("./scenery.js").Scenery} Scenery */

const LETTERS_FROM = 12;
const PLUS_FROM = 13;
const SIGNS_FROM = 44;
/** Widths of links in a node and across, where there are few of them, and where there are many. */
const WIDTHS = { few: [1.25, 2.75], many: [0.6, 1.1] };
const MANY = 48;
/** Columns below which a block's share is told by its shade, not by its level. */
const LEVELS_FROM = 14;
const LEVEL_ROWS_FROM = 5;
export const LETTERS = "#10151d";

/** Draws a moment. @param {Scenery} scenery */
export function paintMoment(scenery) {
  const { execution, steps } = scenery;
  const done = Math.min(execution.numSteps, Math.floor(steps + 1e-9));
  const links = done < execution.numSteps ? execution.links(done) : [];
  paintNodes(scenery);
  paintRanks(scenery);
  if (execution.hasWork) paintWork(scenery, done);
  paintBlocks(scenery, execution.held(done));
  const widths = links.length > MANY ? WIDTHS.many : WIDTHS.few;
  for (const link of links) paintLink(scenery, link, widths[Number(link.across)]);
  const share = Math.max(0, steps - done);
  for (const link of links) paintPacket(scenery, link, share);
}

/** @param {Scenery} scenery */
function paintNodes({ context, figure, theme, say }) {
  const { column, bottom, line, places } = figure;
  context.font = `12px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  let free = 0;
  for (const { first, last, node } of figure.nodes()) {
    const left = figure.x[first] - column / 2;
    const wide = figure.x[last] + column / 2 - left;
    context.fillStyle = theme.box;
    context.strokeStyle = theme.edge;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(left - 2, line - 1, wide + 4, bottom - line + 2, 4);
    context.fill();
    context.stroke();
    const { nodes } = places[first];
    const names = [
      nodes > 1 ? say("nodes", { first: node, last: node + nodes - 1 }) : say("node", { node }),
      nodes > 1 ? `${node}–${node + nodes - 1}` : String(node),
    ];
    const fits = names.find((name) => context.measureText(name).width <= wide + 2) ?? names[1];
    // Where names are wider than their nodes, every few nodes are named.
    const half = context.measureText(fits).width / 2;
    const middle = left + wide / 2;
    if (middle - half < free) continue;
    context.fillStyle = theme.faint;
    context.fillText(fits, middle, bottom + 11);
    free = middle + half + 6;
  }
}

/** @param {Scenery} scenery */
function paintRanks({ context, execution, figure, theme, say }) {
  const { column, line, x, places } = figure;
  const shown = places.map((place, i) => ({ ...place, i })).filter(({ ranks }) => ranks > 0);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `600 12px ${theme.font}`;
  context.fillStyle = theme.cell;
  for (const { i } of shown) context.fillRect(x[i] - column / 2 + 0.5, line, column - 1, 19);
  // A place of several ranks says how many they are, in words where all have room for that.
  const worded = shown.map(({ rank, ranks }) => (rank < 0 ? say("ranks", { ranks }) : ""));
  const isWorded = worded.every((name) => context.measureText(name).width < column - 4);
  const names = shown.map(({ rank, ranks }, place) =>
    rank >= 0 ? String(rank) : isWorded ? worded[place] : String(ranks),
  );
  // Where numbers do not fit on all ranks, those of every few stand for them.
  const widest = Math.max(...names.map((name) => context.measureText(name).width));
  const every = Math.ceil((widest + 4) / column);
  context.fillStyle = theme.text;
  shown.forEach(({ i }, place) => {
    if (place % every === 0) context.fillText(names[place], x[i], line + 10);
  });
  if (!execution.hasSwitches) return;
  places.forEach(({ ranks }, place) => {
    if (!ranks) paintSwitch(context, figure, theme, place);
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Figure} figure
 * @param {import("../base/theme.js").Theme} theme
 * @param {number} place
 */
function paintSwitch(context, figure, theme, place) {
  const { x, y } = figure.end(place);
  context.fillStyle = theme.cell;
  context.strokeStyle = theme.faint;
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(x - 14, y - 7, 28, 14, 3);
  context.fill();
  context.stroke();
}

/** @param {Scenery} scenery @param {Uint16Array} held */
function paintBlocks(scenery, held) {
  const { execution, figure } = scenery;
  const { numBlocks, whole } = execution;
  if (!held.length) return;
  for (let row = 0; row < figure.rows; row++) {
    const [first, end] = figure.blocksOf(row, numBlocks);
    figure.places.forEach(({ ranks }, place) => {
      if (!ranks) return;
      let share = 0;
      for (let block = first; block < end; block++)
        share += held[place * numBlocks + block] / whole[block] / (end - first);
      paintBlock(scenery, place, row, first, share);
      if (end - first > 1) return;
      const count = held[place * numBlocks + first];
      const name = share >= 1 - 1e-9 ? String(first) : `${count}/${whole[first]}`;
      if (count) letterBlock(scenery, place, row, name, share);
    });
  }
}

/**
 * Fills what a rank holds of the blocks of a row.
 * @param {Scenery} scenery
 * @param {number} place
 * @param {number} row
 * @param {number} block
 * @param {number} share
 */
function paintBlock({ context, figure, hues, theme }, place, row, block, share) {
  const { column, row: high, top, x } = figure;
  const inset = high >= 6 ? 1 : 0;
  const side = column >= 6 ? 1 : 0;
  const wide = column - 2 * side;
  const left = x[place] - column / 2 + side;
  const y = top + row * high + inset;
  context.fillStyle = theme.cell;
  context.fillRect(left, y, wide, high - inset);
  if (!share) return;
  const isWhole = share >= 1 - 1e-9;
  if (column < LEVELS_FROM || high < LEVEL_ROWS_FROM) {
    context.fillStyle = hues.shade(block, share);
    context.fillRect(left, y, wide, high - inset);
    return;
  }
  const until = isWhole ? wide : Math.max(1, wide * share);
  context.fillStyle = isWhole ? hues.fill(block) : hues.part(block);
  context.fillRect(left, y, until, high - inset);
  // The level of a sum, and the foot of a block that is whole, where there is room for either.
  context.fillStyle = hues.edge(block);
  if (!isWhole && wide >= 6) context.fillRect(left + until - 2, y, 2, high - inset);
  if (isWhole && high >= 8) context.fillRect(left, y + high - inset - 2, wide, 2);
}

/**
 * @param {Scenery} scenery
 * @param {number} place
 * @param {number} row
 * @param {string} name
 * @param {number} share
 */
function letterBlock({ context, figure, theme }, place, row, name, share) {
  if (figure.row < LETTERS_FROM) return;
  context.font = `12px ${theme.font}`;
  const isPart = name.includes("/");
  const room = isPart ? figure.column / 2 - 4 : figure.column - 6;
  if (context.measureText(name).width > room) return;
  const { column, row: high, top, x } = figure;
  context.fillStyle = isPart ? theme.text : LETTERS;
  // A sum is told beside its level, where that leaves more room.
  context.textAlign = isPart ? (share < 0.5 ? "right" : "left") : "center";
  const aside = isPart ? (column / 2 - 5) * (share < 0.5 ? 1 : -1) : 0;
  context.fillText(name, x[place] + aside, top + (row + 0.5) * high);
  context.textAlign = "center";
}

/** @param {Scenery} scenery @param {Link} link @param {number} width */
function paintLink({ context, figure, theme }, link, width) {
  if (link.source === link.target) return;
  const arc = figure.arc(link.source, link.target);
  const { from, to, rise } = arc;
  context.strokeStyle = theme.faint;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.bezierCurveTo(from.x, from.y - rise, to.x, to.y - rise, to.x, to.y);
  context.stroke();
  if (figure.column < 9) return;
  const tip = along(arc, 1);
  const before = along(arc, 0.94);
  const angle = rise ? Math.PI / 2 : Math.atan2(tip.y - before.y, tip.x - before.x);
  context.fillStyle = theme.faint;
  context.beginPath();
  for (const turn of [0, 2.6, -2.6])
    context.lineTo(
      tip.x + (turn ? 7 : 0) * Math.cos(angle + turn),
      tip.y + (turn ? 7 : 0) * Math.sin(angle + turn),
    );
  context.fill();
}

/** @param {Scenery} scenery @param {Link} link @param {number} share */
function paintPacket({ context, execution, figure, hues, theme }, link, share) {
  if (link.source === link.target) return;
  const size = Math.max(5, Math.min(18, figure.column / 2));
  const { x, y: way } = along(figure.arc(link.source, link.target), share);
  // What has not left, or has arrived, stands on its rank and leaves the number free.
  const y = Math.min(way, figure.line - size / 2 - 1);
  const sheets = size < PLUS_FROM ? 1 : Math.min(3, link.count);
  for (let sheet = sheets - 1; sheet >= 0; sheet--) {
    const shift = 2.5 * sheet;
    context.fillStyle = link.blocks.length ? hues.fill(link.blocks[sheet] ?? 0) : theme.accent;
    context.strokeStyle = theme.text;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(x - size / 2 + shift, y - size / 2 - shift, size, size, 3);
    context.fill();
    if (size >= PLUS_FROM) context.stroke();
  }
  if (size < PLUS_FROM) return;
  const isOne = link.blocks.length === 1;
  const text = isOne ? String(link.blocks[0]) : String(link.count);
  context.font = `600 12px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = LETTERS;
  if (isOne && context.measureText(text).width < size + 2) context.fillText(text, x, y + 1);
  // Beside the block, what its receiver does with it; of several, how many they are.
  const isMany = !isOne && !execution.header.is_grouped;
  const sign = `${isMany ? `×${link.count}` : ""}${link.reduces ? "+" : ""}`;
  context.fillStyle = theme.text;
  context.textAlign = "left";
  if (sign && figure.column >= SIGNS_FROM)
    context.fillText(sign, x + size / 2 + 2 + 2.5 * (sheets - 1), y - 2);
}
