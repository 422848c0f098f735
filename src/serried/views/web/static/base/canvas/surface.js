// A canvas that fills its frame: its size in pixels of the page, its density, one redraw a frame.

/** Keeps a canvas as large as its frame and as sharp as the screen. */
export class Surface {
  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} frame */
  constructor(canvas, frame) {
    this.canvas = canvas;
    this.frame = frame;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.width = 0;
    this.height = 0;
    this.density = 1;
    /** The density of what stands still: that of the screen. */
    this.sharp = 1;
    /** Whether nothing was drawn since it was wiped. */
    this.isClean = true;
  }

  /** Takes the size of the frame; true when it has changed. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    return this.take(width, height);
  }

  /** Takes a size in pixels of the page; true when it has changed. */
  /** @param {number} width @param {number} height */
  take(width, height) {
    const density = window.devicePixelRatio || 1;
    if (width === this.width && height === this.height && density === this.sharp) return false;
    Object.assign(this, { width, height, density, sharp: density });
    this._fill();
    return true;
  }

  /** Takes fewer pixels for what moves, or all again. @param {number} times  fewer each way */
  coarsen(times) {
    if (this.density === this.sharp / times) return;
    this.density = this.sharp / times;
    this._fill();
  }

  _fill() {
    this.canvas.width = Math.max(1, Math.round(this.width * this.density));
    this.canvas.height = Math.max(1, Math.round(this.height * this.density));
  }

  /** Wipes the canvas unless it is wiped: a large one that changes costs milliseconds a frame. */
  wipe() {
    if (!this.isClean) this.begin();
    this.isClean = true;
  }

  /** Wipes the canvas and returns its context, scaled to pixels of the page. */
  begin() {
    this.isClean = false;
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.context.setTransform(this.density, 0, 0, this.density, 0, 0);
    return this.context;
  }

  /** Returns where a pointer event is on the canvas. @param {MouseEvent} event */
  point(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }
}

/** Gathers requests to draw into one call per frame. */
export class Redraw {
  /** @param {() => void} draw */
  constructor(draw) {
    this.draw = draw;
    this.waiting = false;
  }

  request() {
    if (this.waiting) return;
    this.waiting = true;
    AWAITED.add(this);
    requestAnimationFrame(() => this.now());
  }

  /** Draws what was asked for and is not yet drawn. */
  now() {
    if (!this.waiting) return;
    this.waiting = false;
    AWAITED.delete(this);
    this.draw();
  }
}

/** Those that wait for the next frame. @type {Set<Redraw>} */
const AWAITED = new Set();

/** Draws at once whatever waits for the next frame: paper has none. */
export function drawAwaited() {
  for (const each of [...AWAITED]) each.now();
}
