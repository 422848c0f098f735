// The map's camera: which part of the plane is in view, and how large a unit is drawn.

/** Maps units of the plane to pixels: pixel = (unit - origin) * scale. */
export class Camera {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.least = 0.01;
    this.most = 400;
  }

  /**
   * Shows a plane of `width` x `height` units whole, in the middle of a frame of pixels.
   * @param {{width: number, height: number}} plane
   * @param {{width: number, height: number}} frame
   * @param {number} margin in pixels
   * @param {{left: number, top: number}} [names]  pixels that names take beside the plane
   */
  fit(plane, frame, margin, { left, top } = { left: 0, top: 0 }) {
    const wide = Math.max(1, frame.width - 2 * margin - left);
    const high = Math.max(1, frame.height - 2 * margin - top);
    this.scale = Math.min(wide / plane.width, high / plane.height, this.most);
    this.least = this.scale / 2;
    this.x = plane.width / 2 - (frame.width + left) / 2 / this.scale;
    this.y = plane.height / 2 - (frame.height + top) / 2 / this.scale;
  }

  /**
   * Zooms by `factor`, the unit under pixel (px, py) staying there.
   * @param {number} factor
   * @param {number} px
   * @param {number} py
   */
  zoom(factor, px, py) {
    const scale = Math.min(this.most, Math.max(this.least, this.scale * factor));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
  }

  /** Moves the view by pixels. @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
  }

  /**
   * Brings a point to the middle unless it is in view.
   * @param {number} x
   * @param {number} y
   * @param {{width: number, height: number}} frame
   */
  reveal(x, y, frame) {
    const px = (x - this.x) * this.scale;
    const py = (y - this.y) * this.scale;
    if (px >= 0 && py >= 0 && px <= frame.width && py <= frame.height) return;
    this.x = x - frame.width / 2 / this.scale;
    this.y = y - frame.height / 2 / this.scale;
  }
}

/**
 * Returns the part of a nest that a camera shows on a canvas, in units.
 * @param {{x: number, y: number, scale: number}} camera
 * @param {{width: number, height: number}} surface
 */
export function viewOf({ scale, x, y }, { width, height }) {
  return { x, y, right: x + width / scale, bottom: y + height / scale };
}
