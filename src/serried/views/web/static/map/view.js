// The cluster map: its view of the scene, what the pointer and the keys do to it.

import { listen, wheelZoom } from "../base/canvas/gestures.js";
import { Redraw, Surface } from "../base/canvas/surface.js";
import { onThemeChange, theme } from "../base/theme.js";
import { levelsOf, shapeOf } from "./arrangement.js";
import { Camera } from "./camera.js";
import { Differing } from "./differing.js";
import { CellPixels, isLarge } from "./fill.js";
import { paintLit } from "./light.js";
import { MARGIN as NAMES } from "./names.js";
import { Nest } from "./nest.js";
import { paintMap, ranksInView, showsMarks, sparedIn } from "./paint.js";
import { NO_SHADE, Shades } from "./shade.js";
import { tilesOf } from "./tiles.js";

const MARGIN = 12;
/** Pixels of the line that says what cells show that have no room for marks. */
const KEY = 28;
/** Milliseconds after which a view that is moved is at rest, and drawn with all its words. */
const REST_MS = 120;
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

/** @typedef {import("./arrangement.js").Arrangement} Arrangement */

/** Draws a scene on two canvases: the map below, what is lit above. */
export class MapView {
  /**
   * @param {HTMLElement} frame
   * @param {HTMLCanvasElement} base
   * @param {HTMLCanvasElement} over
   * @param {MapEvents} events
   * @param {import("./picture.js").Names} names
   */
  constructor(frame, base, over, events, names) {
    this.below = new Surface(base, frame);
    this.above = new Surface(over, frame);
    this.events = events;
    this.names = names;
    this.camera = new Camera();
    /** The view of all of the map. */
    this.home = { x: 0, y: 0, scale: 1 };
    /** @type {import("../base/scene.js").Scene | null} */
    this.scene = null;
    /** @type {Nest | null} */
    this.nest = null;
    /** @type {Arrangement} */
    this.arrangement = { arrange: "node", cube: "" };
    /** What fills a cell that shows one thing: "", stage, or group: and a kind. */
    this.by = "";
    this.pixels = new CellPixels();
    this.shades = new Shades();
    this.movedAt = 0;
    /** @type {number | null} */
    this.resting = null;
    this.byHand = false;
    /** @type {import("./heat.js").Heat | null} */
    this.heat = null;
    /** @type {import("../base/lit.js").Lit | null} */
    this.lit = null;
    this.differing = new Differing(this.above);
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
    this.theme = theme();
    onThemeChange(() => {
      this.theme = theme();
      this.redraw.request();
    });
  }

  /**
   * Shows a scene; null shows nothing.
   * @param {import("../base/scene.js").Scene | null} scene
   * @param {Arrangement} arrangement
   */
  show(scene, arrangement) {
    const shape = scene && shapeOf(scene, arrangement);
    this.theme = theme();
    const same = this.scene && shape === shapeOf(this.scene, this.arrangement);
    this.scene = scene;
    this.arrangement = arrangement;
    this.focused = -1;
    this._layOut(Boolean(same));
  }

  /** Whether its outer items are stages, each whole. */
  get byStage() {
    return this.arrangement.arrange === "stage";
  }

  /**
   * Colours the cells by a figure, or by stages or groups in their order, or shows marks again.
   * @param {import("./heat.js").Heat | null} heat
   * @param {string} by  stage, or group: and a kind; "" for marks
   */
  warm(heat, by) {
    this.heat = heat;
    this.by = by;
    this.shades.forget();
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

  /** Outlines ranks that differ from a layout beside. @param {Uint8Array | null} differs */
  outline(differs) {
    if (differs === this.differing.ranks) return;
    this.differing.ranks = differs;
    this.redraw.request();
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
    if (!this.nest || !this.scene) return -1;
    const here = this.focused >= 0 ? this.focused : from;
    this.focused = here < 0 || here >= this.scene.worldSize ? 0 : this.nest.neighbour(here, dx, dy);
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
    if (!this.nest || !this.scene || rank < 0 || rank >= this.scene.worldSize) return;
    const x = this.nest.cellX(rank) + this.nest.aspect / 2;
    const y = this.nest.cellY(rank) + 0.5;
    this.camera.reveal(x, y, this.above);
    this.redraw.request();
  }

  /**
   * Returns the rank under a point of the canvas, -1 where there is none.
   * @param {number} x
   * @param {number} y
   */
  rankAt(x, y) {
    const { camera, nest } = this;
    return nest ? nest.rankAt(x / camera.scale + camera.x, y / camera.scale + camera.y) : -1;
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
    const { camera, nest } = this;
    if (!nest) return null;
    return {
      x: (nest.cellX(rank) + nest.aspect / 2 - camera.x) * camera.scale,
      y: (nest.cellY(rank) + 0.5 - camera.y) * camera.scale,
      size: camera.scale * Math.min(1, nest.aspect),
    };
  }

  /** The ranks whose cells are in view. */
  get inView() {
    const picture = this._picture(this.below);
    return picture ? ranksInView(picture) : [];
  }

  /** Writes the view as RANK,SCALE: the rank in the middle and its size; "" when all is shown. */
  toString() {
    if (!this.byHand || !this.scene || !this.nest) return "";
    const { x, y, scale } = this.camera;
    const middleX = x + this.above.width / 2 / scale;
    const middleY = y + this.above.height / 2 / scale;
    const nearest = this.nest.nearest(middleX, middleY);
    return `${nearest},${Number(scale.toPrecision(4))}`;
  }

  /** Takes the view that `text` holds, or shows all. @param {string} text */
  take(text) {
    if (text === String(this)) return;
    const [rank, scale] = text.split(",").map(Number);
    if (!this.nest || !this.scene || !(rank >= 0 && rank < this.scene.worldSize && scale > 0)) {
      if (this.byHand) this.fit();
      return;
    }
    this.byHand = true;
    this.camera.scale = Math.min(this.camera.most, Math.max(this.camera.least, scale));
    this.camera.x =
      this.nest.cellX(rank) + this.nest.aspect / 2 - this.above.width / 2 / this.camera.scale;
    this.camera.y = this.nest.cellY(rank) + 0.5 - this.above.height / 2 / this.camera.scale;
    this.redraw.request();
  }

  /** Returns where the pointer is, in pixels of the page. */
  pointerOnPage() {
    const { left, top } = this.above.canvas.getBoundingClientRect();
    return { x: left + this.pointer.x, y: top + this.pointer.y };
  }

  /** @param {() => void} move */
  _move(move) {
    if (!this.nest) return;
    move();
    this.byHand = true;
    this.movedAt = performance.now();
    if (this.resting !== null) clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.resting = null;
      this.redraw.request();
    }, REST_MS);
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
    const keeps = keepView && this.byHand && this.nest?.worldSize === scene?.worldSize;
    if (!scene || !this.below.width) {
      this.nest = null;
    } else if (!keeps || !this.nest) {
      this._fit(scene, 0);
      if (!this.heat && !this.by && !this.isMarked) this._fit(scene, KEY);
      this.byHand = false;
    }
    this.redraw.request();
  }

  /**
   * Lays out all of a scene in view.
   * @param {import("../base/scene.js").Scene} scene
   * @param {number} below  pixels to leave at the lower edge
   */
  _fit(scene, below) {
    const levels = levelsOf(scene, this.arrangement);
    const names = levels.some(({ name }) => name === "row") ? NAMES : { left: 0, top: 0 };
    const frame = { width: this.below.width, height: this.below.height - below };
    this.nest = new Nest(levels, {
      width: frame.width - 2 * MARGIN - names.left,
      height: frame.height - 2 * MARGIN - names.top,
    });
    this.camera.fit(this.nest, frame, MARGIN, names);
    this.home = { x: this.camera.x, y: this.camera.y, scale: this.camera.scale };
  }

  /** Returns parts of the map that are at least so many pixels wide. @param {number} pixels */
  tiles(pixels) {
    return this.nest && tilesOf(this.nest, pixels / this.camera.scale);
  }

  /** Whether cells show a mark for each kind now. */
  get isMarked() {
    const picture = this._picture(this.below);
    return Boolean(picture && showsMarks(picture));
  }

  /** What links are not drawn over: marks as they stand now, and names; in pixels. */
  get spared() {
    const picture = this._picture(this.below);
    return picture ? sparedIn(picture, this.below.context) : { marks: [], names: [] };
  }

  get isDrawn() {
    return this.nest !== null;
  }

  /** What fills a cell that shows one thing. */
  get shade() {
    const { by, heat, scene, theme: look } = this;
    return scene ? this.shades.of(scene, heat, by, look.dark) : NO_SHADE;
  }

  /**
   * @param {import("./picture.js").Canvas} surface
   * @returns {import("./picture.js").Picture | null}
   */
  _picture(surface) {
    const { scene, nest, camera } = this;
    if (!scene || !nest) return null;
    return {
      scene,
      nest,
      camera,
      home: this.home,
      surface,
      theme: this.theme,
      heat: this.heat,
      shade: this.shade,
      isFilled: this.by !== "",
      isMoving: this.resting !== null,
      pixels: this.pixels,
      names: this.names,
    };
  }

  _draw() {
    const isMoving = this.resting !== null;
    this.below.coarsen(isMoving && isLarge(this.below, this.scene?.worldSize ?? 0) ? 2 : 1);
    const picture = this._picture(this.below);
    if (picture) {
      paintMap(picture);
      this.drawn.maps++;
    } else this.below.begin();
    this.differing.draw(picture);
    this._drawLit();
    this.events.painted();
  }

  _drawLit() {
    const isLit = this.lit || this.pinned >= 0 || this.focused >= 0;
    const picture = isLit ? this._picture(this.above) : null;
    if (picture) {
      paintLit(picture, this.lit, this.pinned, this.focused);
      this.drawn.lights++;
    } else this.above.wipe();
  }
}
