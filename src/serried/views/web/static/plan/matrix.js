// The traffic of the planned step as a matrix: who sends (rows) how much to whom (columns), by
// pointer and by arrows.

import { say } from "../base/announcer.js";
import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId } from "../base/dom.js";
import { number, t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { onThemeChange, theme } from "../base/theme.js";
import { hideTip, showTip } from "../base/tip.js";
import { cellAt, gridOf, shareOf } from "./cells.js";

/** @typedef {import("./cells.js").MatrixAnswer} MatrixAnswer */
/** @typedef {import("./cells.js").Cell} Cell */

const SCALE_HEIGHT = 10;

/** @type {Record<string, Cell>} */
const ARROWS = {
  ArrowLeft: { row: 0, column: -1 },
  ArrowRight: { row: 0, column: 1 },
  ArrowUp: { row: -1, column: 0 },
  ArrowDown: { row: 1, column: 0 },
};

/** Draws the matrix of the plan in view. */
export class MatrixPicture {
  constructor() {
    /** @type {MatrixAnswer | null} */
    this.matrix = null;
    /** The cell that is pointed at. @type {Cell | null} */
    this.cell = null;
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("plan-matrix"));
    this.surface = new Surface(this.canvas, byId("plan-matrix-frame"));
    this.redraw = new Redraw(() => this._draw());
    this.canvas.addEventListener("pointermove", (event) => {
      const { matrix, surface } = this;
      this._point(matrix && cellAt(matrix, surface, surface.point(event)));
    });
    this.canvas.addEventListener("pointerleave", () => this._point(null));
    this.canvas.addEventListener("blur", () => this._point(null));
    this.canvas.addEventListener("keydown", (event) => this._key(event));
    new ResizeObserver(() => this.redraw.request()).observe(byId("plan-matrix-frame"));
    onThemeChange(() => this.redraw.request());
  }

  /** Shows an answer, or nothing. @param {MatrixAnswer | null} matrix */
  show(matrix) {
    if (matrix !== this.matrix) this.cell = null;
    this.matrix = matrix;
    byId("plan-matrix-box").hidden = !matrix?.most;
    byId("plan-matrix-verdict").textContent = matrix?.verdict ?? "";
    this.canvas.setAttribute("aria-label", `${t("plan.matrix")}: ${matrix?.verdict ?? ""}`);
    this.redraw.request();
  }

  /** @param {Cell} cell */
  _line({ row, column }) {
    const matrix = /** @type {MatrixAnswer} */ (this.matrix);
    const sent = matrix.sent[row * matrix.rows + column];
    const name = (/** @type {number} */ at) => nameOf(matrix, at);
    return t("plan.matrix_cell", { from: name(row), to: name(column), size: bytesText(sent) });
  }

  /** @param {Cell | null} cell */
  _point(cell) {
    if (cell?.row !== this.cell?.row || cell?.column !== this.cell?.column) this.redraw.request();
    this.cell = cell;
    if (!cell || !this.matrix) return hideTip();
    const { cell: size, left, top } = gridOf(this.matrix, this.surface);
    const { left: x, top: y } = this.canvas.getBoundingClientRect();
    showTip([this._line(cell)], x + left + (cell.column + 1) * size, y + top + cell.row * size);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const way = ARROWS[event.key];
    if (!way || !this.matrix) return;
    event.preventDefault();
    event.stopPropagation();
    const last = this.matrix.rows - 1;
    const { row, column } = this.cell ?? { row: -way.row, column: -way.column };
    const kept = (/** @type {number} */ at) => Math.max(0, Math.min(last, at));
    this._point({ row: kept(row + way.row), column: kept(column + way.column) });
    if (this.cell) say(this._line(this.cell));
  }

  _draw() {
    const { matrix, surface } = this;
    if (!matrix?.most || !byId("plan-matrix-frame").clientWidth) return;
    surface.resize();
    const context = surface.begin();
    const colours = theme();
    const { cell, left, side, top } = gridOf(matrix, surface);
    context.fillStyle = colours.cell;
    context.fillRect(left, top, side, side);
    context.fillStyle = colours.accent;
    matrix.sent.forEach((bytes, at) => {
      if (!bytes) return;
      const [row, column] = [Math.floor(at / matrix.rows), at % matrix.rows];
      context.globalAlpha = shareOf(bytes, matrix.most);
      const gap = cell > 6 ? 1 : 0;
      context.fillRect(left + column * cell, top + row * cell, cell - gap, cell - gap);
    });
    context.globalAlpha = 1;
    context.strokeStyle = colours.faint;
    context.setLineDash([4, 4]);
    context.strokeRect(left - 0.5, top - 0.5, side + 1, side + 1);
    context.setLineDash([]);
    this._names(context, colours);
    this._scale(context, colours);
    if (!this.cell) return;
    context.strokeStyle = colours.text;
    context.lineWidth = 2;
    context.strokeRect(left + this.cell.column * cell, top + this.cell.row * cell, cell, cell);
  }

  /** @param {CanvasRenderingContext2D} context @param {import("../base/theme.js").Theme} colours */
  _names(context, colours) {
    const matrix = /** @type {MatrixAnswer} */ (this.matrix);
    const { cell, left, top } = gridOf(matrix, this.surface);
    context.font = `12px ${colours.font}`;
    context.fillStyle = colours.faint;
    context.textBaseline = "middle";
    const every = Math.ceil(22 / cell);
    for (let at = 0; at < matrix.rows; at += every) {
      const name = String(at * matrix.width);
      context.textAlign = "right";
      context.fillText(name, left - 5, top + (at + 0.5) * cell);
      context.textAlign = "center";
      context.fillText(name, left + (at + 0.5) * cell, top - 9);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {import("../base/theme.js").Theme} colours */
  _scale(context, colours) {
    const matrix = /** @type {MatrixAnswer} */ (this.matrix);
    const { left, side, top } = gridOf(matrix, this.surface);
    const y = top + side + 14;
    const wide = Math.min(160, side);
    for (let at = 0; at < wide; at++) {
      context.globalAlpha = shareOf((at / wide) * matrix.most, matrix.most);
      context.fillStyle = colours.accent;
      context.fillRect(left + at, y, 1, SCALE_HEIGHT);
    }
    context.globalAlpha = 1;
    context.fillStyle = colours.text;
    context.textAlign = "left";
    const range = t("plan.matrix_scale", { most: bytesText(matrix.most) });
    context.fillText(range, left, y + SCALE_HEIGHT + 10);
  }
}

/** Names what a row stands for. @param {MatrixAnswer} matrix @param {number} at */
function nameOf({ unit, width }, at) {
  if (unit !== "nodes") return t(`plan.matrix_${unit}`, { at: number(at) });
  const [first, last] = [at * width, (at + 1) * width - 1];
  return t("plan.matrix_nodes", { first: number(first), last: number(last) });
}
