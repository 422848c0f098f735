// The picture of a search: every layout by its step and memory, told and picked by pointer or keys.

import { say } from "../base/announcer.js";
import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { onThemeChange, theme } from "../base/theme.js";
import { hideTip, showTip } from "../base/tip.js";
import { layoutName, marksOf, scheduleName } from "./found.js";
import { dotAt, dotBeside, dotsOf, paintFront } from "./front.js";
import { secondsText } from "./words.js";

/** @typedef {import("./found.js").FoundAnswer} FoundAnswer */
/** @typedef {import("./found.js").FoundLayout} FoundLayout */

/** @type {Record<string, {dx: number, dy: number}>} */
const ARROWS = {
  ArrowLeft: { dx: -1, dy: 0 },
  ArrowRight: { dx: 1, dy: 0 },
  ArrowUp: { dx: 0, dy: -1 },
  ArrowDown: { dx: 0, dy: 1 },
};

/** Draws what a search found. */
export class FrontPicture {
  /**
   * @param {(layout: FoundLayout) => void} choose
   * @param {(layout: FoundLayout) => boolean} isPicked
   */
  constructor(choose, isPicked) {
    this.choose = choose;
    this.isPicked = isPicked;
    /** @type {FoundAnswer | null} */
    this.found = null;
    /** @type {import("./found.js").Mark[]} */
    this.marks = [];
    /** The layout that is pointed at, by pointer or keys. @type {FoundLayout | null} */
    this.pointed = null;
    this.canvas = byId("plan-front");
    this.surface = new Surface(
      /** @type {HTMLCanvasElement} */ (this.canvas),
      byId("plan-front-frame"),
    );
    this.redraw = new Redraw(() => this._draw());
    this._listen();
  }

  /** Shows an answer. @param {FoundAnswer} found */
  show(found) {
    if (found !== this.found) {
      this.found = found;
      this.marks = found.best.length ? marksOf(found) : [];
      this.pointed = null;
    }
    byId("plan-front-frame").hidden = !this.marks.length;
    this.canvas.setAttribute("aria-label", found.verdict);
    this.redraw.request();
  }

  _listen() {
    const { canvas } = this;
    const at = (/** @type {MouseEvent} */ event) => dotAt(this._dots(), this.surface.point(event));
    canvas.addEventListener("pointermove", (event) => this._point(at(event)));
    canvas.addEventListener("pointerleave", () => this._point(null));
    canvas.addEventListener("blur", () => this._point(null));
    canvas.addEventListener("click", (event) => {
      const dot = at(event);
      if (dot) this.choose(dot.layout);
    });
    canvas.addEventListener("keydown", (event) => this._key(event));
    new ResizeObserver(() => this.redraw.request()).observe(byId("plan-front-frame"));
    onThemeChange(() => this.redraw.request());
  }

  _dots() {
    return dotsOf(this.marks, this.surface);
  }

  _draw() {
    const { found } = this;
    if (!found?.best.length || !byId("plan-front-frame").clientWidth) return;
    this.surface.resize();
    paintFront(this.surface.begin(), this._dots(), this.surface, theme(), {
      card: t("plan.card", { size: bytesText(found.best[0].card_bytes) }),
      step: t("plan.front_step"),
      memory: t("plan.front_memory"),
      front: t("plan.front"),
      isPicked: this.isPicked,
      pointed: this.pointed,
    });
  }

  /** Tells of a layout, null of none. @param {import("./front.js").Dot | null} dot */
  _point(dot) {
    if ((dot?.layout ?? null) !== this.pointed) this.redraw.request();
    this.pointed = dot?.layout ?? null;
    if (!dot) return hideTip();
    const { left, top } = this.canvas.getBoundingClientRect();
    const lines = this._lines(dot.layout);
    showTip(lines, left + dot.x, top + dot.y);
    return say(lines.join(" · "));
  }

  /** @param {FoundLayout} layout */
  _lines(layout) {
    const { micro_batch: micro, recompute, zero } = layout.asked;
    const kind = this.found?.words.recompute[recompute.kind] ?? recompute.kind;
    return [
      `${layoutName(layout)}, ${scheduleName(layout)}`,
      t("plan.manner", { micro, zero, recompute: kind }),
      `${secondsText(layout.step_s)}, ${bytesText(layout.peak_bytes)}`,
    ];
  }

  /** Moves to another layout by arrows, and picks it by Enter. @param {KeyboardEvent} event */
  _key(event) {
    const way = ARROWS[event.key];
    const dots = this._dots();
    // Of the same layout in the cloud and on the front, the front's is meant.
    const from = dots.findLast(({ layout }) => layout === this.pointed) ?? null;
    if (way) this._point(dotBeside(dots, from, way));
    else if ((event.key === "Enter" || event.key === " ") && this.pointed)
      this.choose(this.pointed);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
