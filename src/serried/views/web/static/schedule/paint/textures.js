// Textures of idle time, so that its causes can be told apart at a glance; one drawing of each.

/** @typedef {import("../../base/theme.js").Theme} Theme */

const TILE = 6;
/** @type {Record<string, (pen: OffscreenCanvasRenderingContext2D) => void>} */
const DRAWINGS = {
  dots: (pen) => {
    pen.fillRect(1, 1, 1.4, 1.4);
    pen.fillRect(4, 4, 1.4, 1.4);
  },
  cross: (pen) => {
    lines(pen, 1);
    lines(pen, -1);
  },
};
/** @type {{theme: Theme | null, patterns: Map<string, CanvasPattern | null>}} */
const made = { theme: null, patterns: new Map() };

/**
 * Returns the textures by name, made anew when the page turns dark or light.
 * @param {CanvasRenderingContext2D} context
 * @param {Theme} theme
 */
export function texturesOf(context, theme) {
  if (made.theme?.dark === theme.dark) return made.patterns;
  made.theme = theme;
  for (const [name, draw] of Object.entries(DRAWINGS)) {
    const tile = new OffscreenCanvas(TILE, TILE);
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.strokeStyle = pen.fillStyle = theme.faint;
    pen.globalAlpha = 0.55;
    pen.lineWidth = 1;
    draw(pen);
    made.patterns.set(name, context.createPattern(tile, "repeat"));
  }
  return made.patterns;
}

/** @param {OffscreenCanvasRenderingContext2D} pen @param {number} slope */
function lines(pen, slope) {
  pen.beginPath();
  for (const shift of [-TILE, 0, TILE]) {
    pen.moveTo(shift, slope > 0 ? TILE : 0);
    pen.lineTo(shift + TILE, slope > 0 ? 0 : TILE);
  }
  pen.stroke();
}
