// The minimap above the timeline: all steps in one row, drawn by coverage, and the part in view.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { readPayload } from "../base/payload.js";
import { askPayload } from "../base/questions.js";
import { onThemeChange, theme } from "../base/theme.js";
import { GUTTER, inksOf } from "./paint/picture.js";
import { colouringOf } from "./trace/colours.js";
import { Shares } from "./trace/sheet.js";

/** @typedef {import("./trace/tracks.js").Tracks} Tracks */

const LEAST_WIDE = 6;
/** Above the row stand the numbers of the steps, so many pixels high. */
const NUMBERS = 12;
const GRIP = 5;

/** Shows all of a trace, and moves the timeline's view by hand. */
export class Minimap {
  /**
   * @param {import("./state.js").Host} host
   * @param {import("./view.js").TimelineView} view
   */
  constructor(host, view) {
    this.host = host;
    this.view = view;
    /** @type {Shares | null} */
    this.shares = null;
    this.asked = 0;
    /** Which edge is held, or the middle: -1, 1 or 0; null for none. @type {number | null} */
    this.held = null;
    this.canvas = make("canvas", { id: "minimap", role: "img" });
    this.frame = make("div", { id: "minimap-frame", hidden: true }, this.canvas);
    byId("timeline-frame").before(this.frame);
    this.surface = new Surface(this.canvas, this.frame);
    this.redraw = new Redraw(() => this._draw());
    this.bits = document.createElement("canvas");
    new ResizeObserver(() => this.redraw.request()).observe(this.frame);
    onThemeChange(() => this._paint());
    document.addEventListener("spoken", () => this.redraw.request());
    this.canvas.addEventListener("pointerdown", (event) => this._press(event));
    this.canvas.addEventListener("pointermove", (event) => this._drag(event));
    this.canvas.addEventListener("pointerup", () => (this.held = null));
    this.canvas.addEventListener("dblclick", () => view.fit());
  }

  get isBusy() {
    return this.asked > 0 || this.redraw.waiting;
  }

  /** Asks for all of a trace that was sent. @param {Tracks} tracks */
  async take(tracks) {
    this.shares = null;
    this.frame.hidden = tracks.steps.start.length < 2;
    if (this.frame.hidden) return;
    this.asked++;
    try {
      const { header, columns } = readPayload(
        await askPayload(`trace/overview?trace=${this.host.trace}`),
      );
      if (tracks !== this.host.tracks) return;
      const bytes = /** @type {Uint8Array} */ (columns.get("shares"));
      this.shares = new Shares(bytes, header.bucket_ns, 0, colouringOf(tracks, ""));
      this._paint();
    } catch (error) {
      this.host.fail(error);
    } finally {
      this.asked--;
    }
  }

  /** Paints the row once for its width: what is in view is drawn over it. */
  _paint() {
    const { tracks } = this.host;
    const { shares, surface, bits } = this;
    surface.resize();
    const wide = Math.round((surface.width - GUTTER) * surface.density);
    if (!tracks || !shares || wide < 1) return this.redraw.request();
    bits.width = wide;
    bits.height = 1;
    const look = theme();
    const inks = inksOf(tracks, shares.colouring, look);
    const found = shares.shares(0, tracks.total, wide);
    const context = /** @type {CanvasRenderingContext2D} */ (bits.getContext("2d"));
    const image = context.createImageData(wide, 1);
    const ground = channels(parseInt(look.cell.slice(1), 16));
    for (let x = 0; x < wide; x++) {
      const mixed = [0, 0, 0];
      let all = 0;
      for (let c = 0; c < shares.numClasses; c++) {
        const share = found[x * shares.numClasses + c];
        all += share;
        for (let i = 0; i < 3; i++) mixed[i] += share * ((inks[c] >> (8 * i)) & 255);
      }
      for (let i = 0; i < 3; i++)
        image.data[4 * x + i] = mixed[i] + Math.max(0, 1 - all) * ground[i];
      image.data[4 * x + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return this.redraw.request();
  }

  _draw() {
    const { tracks } = this.host;
    const { surface, shares, bits, view, canvas } = this;
    if (!tracks || !shares || this.frame.hidden) return;
    if (surface.resize()) return this._paint();
    const look = theme();
    canvas.setAttribute("aria-label", t("minimap.label", { steps: tracks.steps.start.length }));
    const context = surface.begin();
    const [top, high] = [NUMBERS, surface.height - NUMBERS];
    context.imageSmoothingEnabled = false;
    context.drawImage(bits, GUTTER, top, surface.width - GUTTER, high);
    this._steps(context, tracks, look, top, high);
    const from = Math.max(GUTTER, this._pixel(view.time.start));
    const to = Math.min(surface.width, Math.max(from + LEAST_WIDE, this._pixel(view.time.end)));
    context.fillStyle = look.veil;
    context.fillRect(GUTTER, top, from - GUTTER, high);
    context.fillRect(to, top, surface.width - to, high);
    context.strokeStyle = look.accent;
    context.lineWidth = 2;
    context.strokeRect(from + 1, top + 1, to - from - 2, high - 2);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Tracks} tracks
   * @param {import("../base/theme.js").Theme} look
   * @param {number} top
   * @param {number} high
   */
  _steps(context, tracks, look, top, high) {
    context.font = `10px ${look.font}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = look.faint;
    context.fillText(t("minimap.steps", { steps: tracks.steps.start.length }), 8, top + high / 2);
    let free = 0;
    tracks.steps.start.forEach((start, i) => {
      const x = this._pixel(start);
      const name = String(tracks.steps.number[i]);
      if (x < free) return;
      context.globalAlpha = 0.6;
      context.fillRect(x, top, 1, high);
      context.globalAlpha = 1;
      context.fillText(name, x + 1, NUMBERS / 2);
      free = x + context.measureText(name).width + 6;
    });
  }

  /** @param {number} time */
  _pixel(time) {
    const total = this.host.tracks?.total || 1;
    return GUTTER + (time / total) * (this.surface.width - GUTTER);
  }

  /** @param {PointerEvent} event */
  _time(event) {
    const { x } = this.surface.point(event);
    const share = (x - GUTTER) / Math.max(1, this.surface.width - GUTTER);
    return Math.min(1, Math.max(0, share)) * (this.host.tracks?.total ?? 0);
  }

  /** @param {PointerEvent} event */
  _press(event) {
    const { x } = this.surface.point(event);
    const { time } = this.view;
    this.canvas.setPointerCapture(event.pointerId);
    const near = (/** @type {number} */ edge) => Math.abs(this._pixel(edge) - x) <= GRIP;
    this.held = near(time.start) ? -1 : near(time.end) ? 1 : 0;
    if (this.held === 0) this._drag(event);
  }

  /** @param {PointerEvent} event */
  _drag(event) {
    if (this.held === null) return;
    const at = this._time(event);
    const { start, end, span } = this.view.time;
    if (this.held < 0 && at < end) this.view.stretch(at, end);
    else if (this.held > 0 && at > start) this.view.stretch(start, at);
    else if (this.held === 0) this.view.stretch(at - span / 2, at + span / 2);
  }
}

/** @param {number} rgb */
function channels(rgb) {
  return [(rgb >> 16) & 255, (rgb >> 8) & 255, rgb & 255];
}
