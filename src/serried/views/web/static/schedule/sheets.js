// Stacked schedules on paper: all of them, each with its axis, in pictures that no sheet cuts.

import { FOR_PAPER } from "../base/canvas/paper.js";
import { Surface } from "../base/canvas/surface.js";
import { byId, make } from "../base/dom.js";
import { theme } from "../base/theme.js";
import { paintScheduleAxis, paintSchedules } from "./paint/stack.js";

/** @typedef {import("./view.js").ScheduleView} ScheduleView */

const AXIS = 24;

/** Prints all that one scrolls to, whenever the page is printed. @param {ScheduleView} view */
export function printWhole(view) {
  FOR_PAPER.push(() => {
    if (!view.scroller.clientHeight || !view.overflows()) return () => {};
    const frame = byId("schedule-frame");
    const sheets = laidOut(view);
    frame.append(sheets);
    frame.classList.add("on-sheets");
    view.isOnPaper = true;
    return () => {
      view.isOnPaper = false;
      frame.classList.remove("on-sheets");
      sheets.remove();
    };
  });
}

/** @param {ScheduleView} view */
function laidOut(view) {
  const sheets = make("div", { id: "schedule-sheets" });
  view.blocks.forEach((data, block) => {
    const head = /** @type {Element} */ (byId("schedule-heads").children[block].cloneNode(true));
    const begin = make("div", { class: "sheet" }, head);
    sheets.append(begin);
    if (!data) return;
    begin.prepend(pictured(view, AXIS, (surface) => axis(view, surface)));
    pieces(view, block).forEach(({ from, to }, place) => {
      const piece = place ? make("div", { class: "sheet" }) : begin;
      sheets.append(piece);
      piece.append(pictured(view, to - from, (surface) => rows(view, surface, from)));
    });
  });
  return sheets;
}

/**
 * Returns a block's rows in pieces, each of which could be seen at once with its head.
 * @param {ScheduleView} view
 * @param {number} block
 */
function pieces({ stack, scroller }, block) {
  const { rows: top, ranks } = stack.blocks[block];
  const room = scroller.clientHeight - AXIS - (top - stack.blocks[block].top);
  const most = Math.max(1, Math.floor(room / stack.row));
  const count = Math.ceil(ranks / most);
  return Array.from({ length: count }, (_, i) => ({
    from: top + i * most * stack.row,
    to: top + Math.min(ranks, (i + 1) * most) * stack.row,
  }));
}

/**
 * Returns a canvas as wide as the view and the form beside it, which is not printed, drawn on.
 * @param {ScheduleView} view
 * @param {number} height
 * @param {(surface: Surface) => void} draw
 */
function pictured(view, height, draw) {
  const canvas = make("canvas");
  canvas.style.height = `${height}px`;
  const surface = new Surface(canvas, canvas);
  surface.take(view.scroller.clientWidth + byId("left").offsetWidth, height);
  draw(surface);
  return canvas;
}

/** @param {ScheduleView} view @param {Surface} surface */
function axis(view, surface) {
  paintScheduleAxis(surface, view.time, theme(), view.names.axis(), NaN);
}

/** @param {ScheduleView} view @param {Surface} surface @param {number} scrolled */
function rows(view, surface, scrolled) {
  paintSchedules({ ...view.shown(theme()), surface, scrolled, hovered: null });
}
