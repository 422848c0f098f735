// Painting over the actions: the critical path, what is chosen or pointed at, what it waited for.

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("../model/simulated.js").Simulated} Simulated */
/** @typedef {import("./picture.js").Spot} Spot */

/**
 * Draws a block's critical path as one line from rank to rank, a pixel's worth of it at a time.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Simulated} data
 * @param {number} block
 */
export function paintPath(picture, context, data, block) {
  const { time, toPixel, stack, scrolled, theme } = picture;
  const { rank, start, end, message } = data.path;
  // Along the foot of the rows, so that what stands in the boxes can be read.
  const foot = (/** @type {number} */ i) => stack.rowTop(block, rank[i]) - scrolled + stack.bar - 2;
  context.beginPath();
  let isDown = false;
  let [pixel, low, high] = [-1, 0, 0];
  for (let i = 0; i < rank.length; i++) {
    if (end[i] < time.start || start[i] > time.end) {
      isDown = false;
      continue;
    }
    const [from, to, y] = [toPixel(start[i]), toPixel(end[i]), foot(i)];
    // A message runs from its sender to the rank of the next piece.
    const after = message[i] && i + 1 < rank.length ? foot(i + 1) : y;
    if (to - from < 1 && isDown && Math.floor(from) === pixel && y >= low && y <= high) continue;
    if (Math.floor(from) !== pixel) [pixel, low, high] = [Math.floor(from), y, y];
    [low, high] = [Math.min(low, y, after), Math.max(high, y, after)];
    if (isDown) context.lineTo(from, y);
    else context.moveTo(from, y);
    context.lineTo(to, after);
    isDown = true;
  }
  context.lineJoin = "round";
  for (const [colour, width] of /** @type {[string, number][]} */ ([
    [theme.box, 4.5],
    [theme.text, 2.2],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
}

/**
 * Outlines what is pointed at and what is chosen, with all of its microbatch and its input.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 */
export function paintSpots(picture, context) {
  const { chosen, hovered, theme } = picture;
  for (const entry of picture.kin)
    outline(picture, context, chosen?.block ?? 0, entry, theme.text, 1);
  if (hovered) paintSpot(picture, context, hovered, theme.text, 2);
  if (chosen) paintSpot(picture, context, chosen, theme.accent, 2.5);
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Spot} spot
 * @param {string} colour
 * @param {number} width
 */
function paintSpot(picture, context, spot, colour, width) {
  const data = picture.blocks[spot.block];
  if (!data) return;
  if (spot.entry >= 0) {
    const half = data.partner(spot.entry);
    if (half >= 0) outline(picture, context, spot.block, half, colour, 1);
    outline(picture, context, spot.block, spot.entry, colour, width);
    paintInput(picture, context, data, spot, colour);
  } else if (spot.idle >= 0) {
    outlineBox(
      picture,
      context,
      spot.block,
      spot.rank,
      data.idle.start[spot.idle],
      data.idle.end[spot.idle],
      colour,
      1.5,
    );
    const source = data.idle.source[spot.idle];
    if (source >= 0) outline(picture, context, spot.block, source, colour, 1.5);
  }
}

/**
 * Draws a line from the action that an entry waited for.
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {Simulated} data
 * @param {Spot} spot
 * @param {string} colour
 */
function paintInput({ stack, scrolled, toPixel }, context, data, spot, colour) {
  const source = data.source[spot.entry];
  if (source < 0) return;
  const y = (/** @type {number} */ rank) =>
    stack.rowTop(spot.block, rank) - scrolled + stack.bar / 2;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.setLineDash([3, 2]);
  context.beginPath();
  context.moveTo(toPixel(data.times.end[source]), y(data.rankOf(source)));
  context.lineTo(toPixel(data.times.start[spot.entry]), y(spot.rank));
  context.stroke();
  context.setLineDash([]);
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} block
 * @param {number} entry
 * @param {string} colour
 * @param {number} width
 */
function outline(picture, context, block, entry, colour, width) {
  const data = picture.blocks[block];
  if (!data) return;
  const { start, end } = data.drawn;
  if (end[entry] < picture.time.start || start[entry] > picture.time.end) return;
  outlineBox(picture, context, block, data.rankOf(entry), start[entry], end[entry], colour, width);
}

/**
 * @param {Picture} picture
 * @param {CanvasRenderingContext2D} context
 * @param {number} block
 * @param {number} rank
 * @param {number} start
 * @param {number} end
 * @param {string} colour
 * @param {number} width
 */
function outlineBox({ stack, scrolled, toPixel }, context, block, rank, start, end, colour, width) {
  const left = toPixel(start);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(
    left,
    stack.rowTop(block, rank) - scrolled,
    Math.max(2, toPixel(end) - left - 1),
    stack.bar,
  );
}
