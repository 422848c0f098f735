// Painting what is lit over the timeline, on a canvas of its own: the rank that is meant and its
// peers beside their lines, and the span under the pointer.

import { traceMark } from "../../base/canvas/marks.js";
import { inkOf } from "../../base/theme.js";
import { paintName } from "./lines.js";
import { AXIS, GUTTER, pictureOf } from "./picture.js";

/** @typedef {import("../trace/rows.js").Line} Line */
/** @typedef {import("./picture.js").Picture} Picture */

const FIRST_MARK = 13;
const MARK = 11;

/** Draws what is lit. @param {import("./picture.js").Shown} shown */
export function paintLit(shown) {
  const { lines, lights, scrolled, surface } = shown;
  const picture = pictureOf(shown);
  const context = surface.begin();
  context.save();
  context.beginPath();
  context.rect(0, AXIS, surface.width, surface.height - AXIS);
  context.clip();
  const { first, last } = lines.between(scrolled, scrolled + surface.height - AXIS);
  for (const line of lines.lines.slice(first, last)) paintRank(picture, context, line);
  context.beginPath();
  context.rect(GUTTER - 1, AXIS, picture.wide + 1, surface.height - AXIS);
  context.clip();
  for (const light of lights) light(picture, context);
  context.restore();
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context @param {Line} line */
function paintRank(picture, context, line) {
  const { kinds, lit, pinnedRank, scrolled, theme } = picture;
  const { row } = line;
  if (!row) return;
  const { rank } = row;
  const isSelf = lit?.rank === rank || pinnedRank === rank;
  if (isSelf) paintName(picture, context, line, row, isSelf);
  const middle = AXIS + line.top - scrolled + line.high / 2;
  let x = GUTTER - FIRST_MARK;
  kinds.forEach((kind, i) => {
    if (!lit?.byKind[i]?.includes(rank)) return;
    context.fillStyle = isSelf ? theme.box : inkOf(kind, theme);
    context.beginPath();
    traceMark(context, kind.mark, x, middle, Math.min(4.5, line.high / 3));
    context.fill();
    x -= MARK;
  });
}
