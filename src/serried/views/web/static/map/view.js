// The cluster map: its view of the scene, what the pointer and the keys do to it.

import { listen, wheelZoom } from "../base/canvas/gestures.js";
import { Redraw, Surface } from "../base/canvas/surface.js";
import { onThemeChange, theme } from "../base/theme.js";
import { Camera } from "./camera.js";
import { Grid } from "./grid.js";
import { paintLit } from "./light.js";
import { paintMap } from "./paint.js";

const MARGIN = 14;
const STEP = 1.25;
const PAN_PIXELS = 80;

/**
 * @typedef {object} MapEvents
 * @property {(rank: number) => void} hover   -1 where there is none
 * @property {(rank: number) => void} pin     -1 beside every rank
 * @property {() => void} moved               the view has changed by hand
 * @property {() => void} painted             the cells stand where they now stand, or another
 *   rank is pinned
 */

/**
 * @typedef {object} Names
 * @property {(box: number, byStage: boolean) => string} box
 * @property {(stage: number) => string} stage
 */

/** Draws a scene on two canvases: the map below, what is lit above. */
export class MapView {
  /**
   * @param {HTMLElement} frame
   * @param {HTMLCanvasElement} base
   * @param {HTMLCanvasElement} over
   * @param {MapEvents} events
   * @param {Names} names
   */
  constructor(frame, base, over, events, names) {
    this.below = new Surface(base, frame);
    this.above = new Surface(over, frame);
    this.events = events;
    this.names = names;
    this.camera = new Camera();
    /** @type {import("../base/scene.js").Scene | null} */
    this.scene = null;
    /** @type {Grid | null} */
    this.grid = null;
    this.byStage = false;
    this.byHand = false;
    /** @type {import("./heat.js").Heat | null} */
    this.heat = null;
    /** @type {import("../base/lit.js").Lit | null} */
    this.lit = null;
    this.pinned = -1;
    this.focused = -1;
    this.pointer = { x: 0, y: 0 };
    this.drawn = { maps: 0, lights: 0 };
    this.redraw = new Redraw(() => this._draw());
    this.relight = new Redraw(() => this._drawLit());
    listen(this.above, {
      hover: (x, y) => {
        this.pointer = { x, y };
        this.focused = -1;
        events.hover(this.rankAt(x, y));
      },
      leave: () => events.hover(-1),
      click: (x, y) => events.pin(this.rankAt(x, y)),
      drag: (dx, dy) => this.pan(-dx, -dy),
      wheel: (x, y, event) => this._move(() => this.camera.zoom(wheelZoom(event), x, y)),
    });
    new ResizeObserver(() => this._resize()).observe(frame);
    onThemeChange(() => this.redraw.request());
  }

  /**
   * Shows a scene; null shows nothing.
   * @param {import("../base/scene.js").Scene | null} scene
   * @param {boolean} byStage
   */
  show(scene, byStage) {
    const same =
      this.scene &&
      scene &&
      byStage === this.byStage &&
      scene.worldSize === this.scene.worldSize &&
      scene.job.ranks_per_node === this.scene.job.ranks_per_node &&
      String(scene.job.node_gpus) === String(this.scene.job.node_gpus) &&
      (!byStage || scene.job.num_stages === this.scene.job.num_stages);
    this.scene = scene;
    this.byStage = byStage;
    this.focused = -1;
    this._layOut(Boolean(same));
  }

  /**
   * Colours the cells by a figure, or by their groups again.
   * @param {import("./heat.js").Heat | null} heat
   */
  warm(heat) {
    if (heat === this.heat) return;
    this.heat = heat;
    this.redraw.request();
  }

  /** Lights ranks. @param {import("../base/lit.js").Lit | null} lit @param {number} pinned */
  light(lit, pinned) {
    const isOther = pinned !== this.pinned;
    this.lit = lit;
    this.pinned = pinned;
    this.relight.request();
    if (isOther) this.events.painted();
  }

  /** Shows all of the map. */
  fit() {
    this.byHand = false;
    this._layOut(false);
    this.events.moved();
  }

  /** Zooms about the pointer, or the middle. @param {number} strength below 0 zooms out */
  zoom(strength) {
    const { x, y } = this._still();
    this._move(() => this.camera.zoom(STEP ** strength, x, y));
  }

  /** Moves the view by pixels. @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this._move(() => this.camera.pan(dx, dy));
  }

  /** Moves the view to the right by a key's worth. @param {number} strength */
  step(strength) {
    this.pan(strength * PAN_PIXELS, 0);
  }

  /**
   * Moves the keyboard's rank; it starts at `from` or in the corner.
   * @param {number} dx
   * @param {number} dy
   * @param {number} from
   */
  focus(dx, dy, from) {
    if (!this.grid || !this.scene) return -1;
    const here = this.focused >= 0 ? this.focused : from;
    this.focused = here < 0 || here >= this.scene.worldSize ? 0 : this.grid.neighbour(here, dx, dy);
    this.reveal(this.focused);
    return this.focused;
  }

  /** Takes the keyboard's rank away. */
  blur() {
    if (this.focused < 0) return;
    this.focused = -1;
    this.relight.request();
  }

  /** Brings a rank into view. @param {number} rank */
  reveal(rank) {
    if (!this.grid || !this.scene || rank < 0 || rank >= this.scene.worldSize) return;
    const x = this.grid.cellX(rank) + 0.5;
    const y = this.grid.cellY(rank) + 0.5;
    this.camera.reveal(x, y, this.above);
    this.redraw.request();
  }

  /**
   * Returns the rank under a point of the canvas, -1 where there is none.
   * @param {number} x
   * @param {number} y
   */
  rankAt(x, y) {
    if (!this.grid) return -1;
    const { camera } = this;
    return this.grid.rankAt(x / camera.scale + camera.x, y / camera.scale + camera.y);
  }

  /** Returns the middle of a rank's cell in pixels of the page. @param {number} rank */
  where(rank) {
    const spot = this.spot(rank);
    const { left, top } = this.above.canvas.getBoundingClientRect();
    return spot && { x: left + spot.x, y: top + spot.y };
  }

  /**
   * Returns the middle of a rank's cell on the canvas, and how wide the cell is.
   * @param {number} rank
   */
  spot(rank) {
    const { camera, grid } = this;
    if (!grid) return null;
    return {
      x: (grid.cellX(rank) + 0.5 - camera.x) * camera.scale,
      y: (grid.cellY(rank) + 0.5 - camera.y) * camera.scale,
      size: camera.scale,
    };
  }

  /** Writes the view as RANK,SCALE: the rank in the middle and its size; "" when all is shown. */
  toString() {
    if (!this.byHand || !this.scene || !this.grid) return "";
    const { x, y, scale } = this.camera;
    const middleX = x + this.above.width / 2 / scale;
    const middleY = y + this.above.height / 2 / scale;
    let nearest = 0;
    let least = Infinity;
    for (let rank = 0; rank < this.scene.worldSize; rank++) {
      const away = Math.hypot(
        this.grid.cellX(rank) + 0.5 - middleX,
        this.grid.cellY(rank) + 0.5 - middleY,
      );
      if (away < least) [nearest, least] = [rank, away];
    }
    return `${nearest},${Number(scale.toPrecision(4))}`;
  }

  /** Takes the view that `text` holds, or shows all. @param {string} text */
  take(text) {
    if (text === String(this)) return;
    const [rank, scale] = text.split(",").map(Number);
    if (!this.grid || !this.scene || !(rank >= 0 && rank < this.scene.worldSize && scale > 0)) {
      if (this.byHand) this.fit();
      return;
    }
    this.byHand = true;
    this.camera.scale = Math.min(this.camera.most, Math.max(this.camera.least, scale));
    this.camera.x = this.grid.cellX(rank) + 0.5 - this.above.width / 2 / this.camera.scale;
    this.camera.y = this.grid.cellY(rank) + 0.5 - this.above.height / 2 / this.camera.scale;
    this.redraw.request();
  }

  /** Returns where the pointer is, in pixels of the page. */
  pointerOnPage() {
    const { left, top } = this.above.canvas.getBoundingClientRect();
    return { x: left + this.pointer.x, y: top + this.pointer.y };
  }

  /** @param {() => void} move */
  _move(move) {
    if (!this.grid) return;
    move();
    this.byHand = true;
    this.redraw.request();
    this.events.moved();
  }

  _still() {
    const { width, height } = this.above;
    return this.above.canvas.matches(":hover") ? this.pointer : { x: width / 2, y: height / 2 };
  }

  _resize() {
    if (!this.below.frame.clientWidth) return;
    const changed = this.below.resize();
    if (this.above.resize() || changed) this._layOut(this.byHand);
  }

  /** @param {boolean} keepView */
  _layOut(keepView) {
    const { scene } = this;
    this.below.resize();
    this.above.resize();
    if (!scene || !this.below.width) {
      this.grid = null;
    } else if (
      !keepView ||
      !this.grid ||
      this.grid.boxOf.length !== scene.worldSize ||
      !this.byHand
    ) {
      const frame = {
        width: this.below.width - 2 * MARGIN,
        height: this.below.height - 2 * MARGIN,
      };
      this.grid = this.byStage
        ? new Grid(scene.stage, scene.placeInStage, frame, { stacked: true })
        : new Grid(scene.node, scene.localRank, frame, {
            capacity: Math.min(scene.worldSize, scene.job.ranks_per_node),
            rooms: scene.job.node_gpus.map((gpus) => gpus / scene.job.gpus_per_rank),
          });
      this.camera.fit(this.grid, this.below, MARGIN);
      this.byHand = false;
    }
    this.redraw.request();
  }

  /** @param {Surface} surface */
  _picture(surface) {
    const { scene, grid, camera } = this;
    if (!scene || !grid) return null;
    return {
      scene,
      grid,
      camera,
      surface,
      theme: theme(),
      heat: this.heat,
      boxName: (/** @type {number} */ box) => this.names.box(box, this.byStage),
      stageName: this.names.stage,
    };
  }

  _draw() {
    const picture = this._picture(this.below);
    if (picture) {
      paintMap(picture);
      this.drawn.maps++;
    } else this.below.begin();
    this._drawLit();
    this.events.painted();
  }

  _drawLit() {
    const picture = this._picture(this.above);
    if (picture) {
      paintLit(picture, this.lit, this.pinned, this.focused);
      this.drawn.lights++;
    } else this.above.begin();
  }
}
