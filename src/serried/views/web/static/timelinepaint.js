// Painting the timeline: a row per rank, time to the right, exact shares where spans are thin.

import { duration, ticks } from "./clock.js";
import { traceMark } from "./marks.js";
import { inkOf, pixel } from "./theme.js";
import { laneBox } from "./tracks.js";

/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {import("./theme.js").Theme} Theme */
/** @typedef {import("./surface.js").Surface} Surface */
/** @typedef {import("./timewindow.js").TimeWindow} TimeWindow */
/** @typedef {import("./lit.js").Lit} Lit */
/**
 * @typedef {object} Picture
 * @property {Tracks} tracks
 * @property {TimeWindow} time
 * @property {Surface} surface
 * @property {Theme} theme
 * @property {number} rowHeight
 * @property {number} scrolled   pixels that the rows are moved up
 * @property {Lit | null} lit
 * @property {import("./scene.js").Kind[]} kinds
 * @property {number} selected   span, -1 for none
 * @property {number} hovered    span, -1 for none
 * @property {number} pinnedRank
 * @property {(row: import("./tracks.js").Row) => [string, string]} rowName  its rank, and where that is
 * @property {(step: number) => string} stepName
 */

export const GUTTER = 158;
export const AXIS = 36;
const TICKS = 19;
const MARKS = 46;
const RECTANGLES_FROM = 3;
/** About how wide a letter is, in heights. */
const LETTER = 0.6;

/** Returns the pixel of a moment. @param {Picture} picture @param {number} moment */
export function timeToPixel({ time, surface }, moment) {
  return GUTTER + ((moment - time.start) / time.span) * (surface.width - GUTTER);
}

/** Draws the timeline; returns how many spans were drawn one by one. @param {Picture} picture */
export function paintTimeline(picture) {
  const { surface, theme, tracks, rowHeight, scrolled } = picture;
  const context = surface.begin();
  context.fillStyle = theme.box;
  context.fillRect(0, 0, surface.width, surface.height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, surface.width, surface.height - AXIS);
  context.clip();
  const hatch = waiting(context, theme);
  const inView = tracks.rows
    .map((row, number) => ({ row, top: AXIS + number * rowHeight - scrolled }))
    .filter(({ top }) => top < surface.height && top + rowHeight > AXIS);
  for (const { row, top } of inView) paintRow(picture, context, row, top);
  paintTickLines(picture, context);
  let drawn = 0;
  for (const { row, top } of inView) {
    for (let lane = 0; lane < row.lanes; lane++) {
      const box = laneBox(lane, row.lanes);
      const high = rowHeight - 2;
      drawn += paintTrack(picture, context, row.track + lane, top + 1 + box.top * high, box.height * high, hatch);
    }
  }
  paintChosen(picture, context);
  context.restore();
  paintAxis(picture, context);
  paintScrollbar(picture, context);
  return drawn;
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context @param {import("./tracks.js").Row} row @param {number} top */
function paintRow(picture, context, row, top) {
  const { surface, theme, rowHeight, lit, kinds, pinnedRank } = picture;
  const isSelf = lit?.rank === row.rank || pinnedRank === row.rank;
  context.fillStyle = isSelf ? theme.accent : theme.cell;
  if (isSelf) context.fillRect(0, top, GUTTER - 4, rowHeight - 1);
  context.fillStyle = theme.cell;
  context.fillRect(GUTTER, top + 1, surface.width - GUTTER, rowHeight - 2);
  const [name, place] = picture.rowName(row);
  const size = Math.min(11.5, Math.max(8, rowHeight - 3));
  const middle = top + rowHeight / 2 + 0.5;
  context.font = `600 ${size}px ${theme.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = isSelf ? theme.box : theme.text;
  context.fillText(name, 8, middle);
  const from = 16 + context.measureText(name).width;
  context.font = `${size}px ${theme.font}`;
  if (!isSelf) context.fillStyle = theme.faint;
  context.fillText(place, from, middle, Math.max(1, GUTTER - MARKS - from));
  if (!lit) return;
  let x = GUTTER - 13;
  kinds.forEach((kind, i) => {
    if (!lit.byKind[i]?.includes(row.rank)) return;
    context.fillStyle = isSelf ? theme.box : inkOf(kind, theme);
    context.beginPath();
    traceMark(context, kind.mark, x, top + rowHeight / 2, Math.min(4.5, rowHeight / 3));
    context.fill();
    x -= 11;
  });
}

/**
 * @param {Picture} picture @param {CanvasRenderingContext2D} context
 * @param {number} track @param {number} top @param {number} high @param {CanvasPattern | null} hatch
 */
function paintTrack(picture, context, track, top, high, hatch) {
  const { tracks, time, surface } = picture;
  const { first, last } = tracks.between(track, time.start, time.end);
  if (last <= first) return 0;
  const wide = surface.width - GUTTER;
  const pixelsOfSpans = (tracks.end[last - 1] - tracks.start[first]) * (wide / time.span);
  if (pixelsOfSpans / (last - first) < RECTANGLES_FROM) {
    paintCoverage(picture, context, track, top, high);
    return 0;
  }
  for (let span = first; span < last; span++) paintSpan(picture, context, span, top, high, hatch);
  return last - first;
}

/**
 * @param {Picture} picture @param {CanvasRenderingContext2D} context
 * @param {number} span @param {number} top @param {number} high @param {CanvasPattern | null} hatch
 */
function paintSpan(picture, context, span, top, high, hatch) {
  const { tracks, surface, theme } = picture;
  const left = Math.max(GUTTER, timeToPixel(picture, tracks.start[span]));
  const right = Math.min(surface.width, timeToPixel(picture, tracks.end[span]));
  const wide = right - left;
  context.fillStyle = tracks.classes[tracks.class[span]];
  context.fillRect(left, top, wide > 4 ? wide - 1 : wide, high);
  if (wide > 6 && hatch && tracks.actions.get(tracks.kind[span])?.name.startsWith("RECV")) {
    context.fillStyle = hatch;
    context.fillRect(left, top, wide - 1, high);
    return;
  }
  if (wide < 15 || high < 9) return;
  const name = tracks.actionName(span);
  const size = Math.min(wide < 40 ? 10.5 : 11.5, high - 1);
  if (name.length * size * LETTER > wide - 2) return;
  context.font = `${size}px ${theme.font}`;
  const long = `${name}  ${duration(tracks.end[span] - tracks.start[span])}`;
  context.fillStyle = theme.letters;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const fits = long.length * size * LETTER < wide - 10;
  context.fillText(fits ? long : name, (left + right) / 2, top + high / 2 + 0.5);
}

/**
 * Fills a track by shares: each pixel mixes the colours of what ran in its time.
 * @param {Picture} picture @param {CanvasRenderingContext2D} context
 * @param {number} track @param {number} top @param {number} high
 */
function paintCoverage({ tracks, time, surface, theme }, context, track, top, high) {
  const wide = surface.width - GUTTER;
  const count = Math.max(1, Math.round(wide * surface.density));
  const shares = tracks.coverage(track).shares(time.start, time.end, count);
  const classes = tracks.classes.length;
  const colours = [theme.cell, ...tracks.classes].map((colour) => pixel(colour));
  const line = new OffscreenCanvas(count, 1);
  const image = new ImageData(count, 1);
  for (let x = 0; x < count; x++) {
    const of = shares.subarray(x * classes, (x + 1) * classes);
    const idle = Math.max(0, 1 - of.reduce((sum, share) => sum + share, 0));
    for (let channel = 0; channel < 3; channel++) {
      let value = idle * ((colours[0] >> (8 * channel)) & 255);
      for (let c = 0; c < classes; c++) value += of[c] * ((colours[c + 1] >> (8 * channel)) & 255);
      image.data[4 * x + channel] = value;
    }
    image.data[4 * x + 3] = 255;
  }
  /** @type {OffscreenCanvasRenderingContext2D} */ (line.getContext("2d")).putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(line, GUTTER, top, wide, high);
}

/** Outlines the span that is selected or hovered, and the selected microbatch on all of its pipeline. @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintChosen(picture, context) {
  const { tracks, theme, selected, hovered, surface } = picture;
  context.save();
  context.beginPath();
  context.rect(GUTTER - 1, AXIS, surface.width, surface.height);
  context.clip();
  for (const span of tracks.sameMicrobatch(selected)) outline(picture, context, span, theme.text, 1);
  outline(picture, context, hovered, theme.text, 2);
  outline(picture, context, selected, theme.accent, 2.5);
  context.restore();
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context @param {number} span @param {string} colour @param {number} width */
function outline(picture, context, span, colour, width) {
  const { tracks, time, rowHeight, scrolled } = picture;
  if (span < 0 || tracks.end[span] < time.start || tracks.start[span] > time.end) return;
  const number = tracks.rowOf(tracks.rank[span]);
  const row = tracks.rows[number];
  const box = laneBox(tracks.trackOf[span] - row.track, row.lanes);
  const top = AXIS + number * rowHeight - scrolled + 1 + box.top * (rowHeight - 2);
  const left = Math.max(GUTTER, timeToPixel(picture, tracks.start[span]));
  const right = Math.max(left + 2, timeToPixel(picture, tracks.end[span]));
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(left, top, right - left - 1, box.height * (rowHeight - 2));
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintAxis(picture, context) {
  const { surface, theme, tracks } = picture;
  const wide = surface.width - GUTTER;
  context.fillStyle = theme.box;
  context.fillRect(0, 0, surface.width, AXIS);
  context.font = `11px ${theme.font}`;
  context.textBaseline = "middle";
  context.lineWidth = 1;
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, wide, surface.height);
  context.clip();
  for (const { time: at, label } of ticksOf(picture)) {
    const x = Math.round(timeToPixel(picture, at)) + 0.5;
    paintLine(context, x, TICKS - 5, TICKS, theme.faint, 0.6);
    context.fillStyle = theme.faint;
    context.textAlign = "left";
    if (x + 6.5 * label.length < surface.width) context.fillText(label, x + 4, TICKS / 2 + 1);
  }
  tracks.steps.start.forEach((start, i) => paintStep(picture, context, i, start, tracks.steps.end[i]));
  context.restore();
  context.strokeStyle = theme.edge;
  context.beginPath();
  context.moveTo(0, AXIS - 0.5);
  context.lineTo(surface.width, AXIS - 0.5);
  context.stroke();
}

/** @param {Picture} picture */
function ticksOf({ time, surface }) {
  return ticks(time.start, time.end, Math.max(2, (surface.width - GUTTER) / 95));
}

/** Draws the lines of the ticks, behind the spans. @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintTickLines(picture, context) {
  for (const { time } of ticksOf(picture)) {
    const x = Math.round(timeToPixel(picture, time)) + 0.5;
    if (x > GUTTER) paintLine(context, x, AXIS, picture.surface.height, picture.theme.faint, 0.3);
  }
}

/** Draws a step: a bracket on the axis with its name, and a line down the rows where it starts. @param {Picture} picture @param {CanvasRenderingContext2D} context @param {number} i @param {number} start @param {number} end */
function paintStep(picture, context, i, start, end) {
  const { surface, theme, tracks } = picture;
  const left = Math.max(GUTTER, timeToPixel(picture, start));
  const right = Math.min(surface.width, timeToPixel(picture, end));
  if (right <= left) return;
  context.fillStyle = theme.cell;
  context.fillRect(left, TICKS, right - left - 1, AXIS - TICKS - 2);
  paintLine(context, Math.round(timeToPixel(picture, start)) + 0.5, TICKS, surface.height, theme.text, 0.45);
  const name = picture.stepName(tracks.steps.number[i]);
  if (right - left < 7 * name.length + 10) return;
  context.fillStyle = theme.text;
  context.fillText(name, left + 5, TICKS + (AXIS - TICKS) / 2 - 0.5);
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} top @param {number} bottom @param {string} colour @param {number} strength */
function paintLine(context, x, top, bottom, colour, strength) {
  context.globalAlpha = strength;
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, bottom);
  context.stroke();
  context.globalAlpha = 1;
}

/** @param {Picture} picture @param {CanvasRenderingContext2D} context */
function paintScrollbar({ surface, theme, rowHeight, scrolled, tracks }, context) {
  const shown = surface.height - AXIS;
  const all = tracks.rows.length * rowHeight;
  if (all <= shown) return;
  context.fillStyle = theme.faint;
  context.globalAlpha = 0.6;
  const high = Math.max(20, (shown * shown) / all);
  const top = AXIS + (scrolled / (all - shown)) * (shown - high);
  context.beginPath();
  context.roundRect(surface.width - 7, top, 5, high, 2.5);
  context.fill();
  context.globalAlpha = 1;
}

/** Returns the hatching of spans that wait, for colour must not stand alone. @param {CanvasRenderingContext2D} context @param {Theme} colours */
function waiting(context, colours) {
  const tile = new OffscreenCanvas(6, 6);
  const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
  pen.strokeStyle = colours.letters;
  pen.globalAlpha = 0.28;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const shift of [-6, 0, 6]) {
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
