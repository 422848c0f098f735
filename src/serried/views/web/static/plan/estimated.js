// How what is estimated looks, and never what was measured: hatched and outlined, with the word.

const GAP = 6;

/**
 * Fills a rectangle as an estimate: its colour, hatched, within an outline.
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {string} colour
 * @param {string} ground  what shows through the hatching
 */
export function fillEstimated(context, { x, y, width, height }, colour, ground) {
  if (width <= 0 || height <= 0) return;
  context.save();
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = ground;
  context.lineWidth = 1;
  context.beginPath();
  // The lines of neighbouring boxes meet: they are counted from the corner of the picture.
  const first = Math.floor((x - y - height) / GAP) * GAP;
  for (let at = first; at < x + width - y; at += GAP) {
    context.moveTo(at + y, y);
    context.lineTo(at + y + height, y + height);
  }
  context.stroke();
  context.restore();
}
