// Painting the layouts of a search: each by its step and its memory, those that none beats joined.
//
//   79.6 GiB ┄┄┄┄┄┄┄┄┄┄┄┄┄┄  the card
//            o
//             \\___o          o  none is better in both
//        3.2 s        4.1 s

/** @typedef {import("./found.js").FoundAnswer} FoundAnswer */
/** @typedef {import("./found.js").FoundLayout} FoundLayout */
/** @typedef {import("../base/theme.js").Theme} Theme */
/**
 * @typedef {object} Said  what is written into the picture, and which layout the job has
 * @property {string} card
 * @property {string} first
 * @property {string} last
 * @property {(layout: FoundLayout) => boolean} isPicked
 */

const LEFT = 24;
const TOP = 24;
const BOTTOM = 24;
const RADIUS = 4;
const NEAR = 12;

/**
 * Returns every layout in the picture, each once, and where it stands.
 * @param {FoundAnswer} found
 * @param {{width: number, height: number}} size
 */
export function dotsOf({ best, pareto }, { width, height }) {
  const all = [...pareto, ...best];
  const steps = all.map(({ step_s: step }) => step);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const card = Math.max(...all.map(({ card_bytes: bytes }) => bytes));
  return all.map((layout, i) => ({
    layout,
    isFront: i < pareto.length,
    x: LEFT + ((layout.step_s - first) / (last - first || 1)) * (width - 2 * LEFT),
    y: TOP + (1 - layout.peak_bytes / card) * (height - TOP - BOTTOM),
  }));
}

/**
 * Returns the layout nearest to a point, null where none is near.
 * @param {FoundAnswer} found
 * @param {{width: number, height: number}} size
 * @param {{x: number, y: number}} point
 */
export function dotAt(found, size, { x, y }) {
  const far = dotsOf(found, size).map((dot) => ({ ...dot, far: Math.hypot(dot.x - x, dot.y - y) }));
  far.sort((one, other) => one.far - other.far);
  return far.length && far[0].far <= NEAR ? far[0].layout : null;
}

/**
 * Draws the layouts.
 * @param {CanvasRenderingContext2D} context
 * @param {FoundAnswer} found
 * @param {{width: number, height: number}} size
 * @param {Theme} theme
 * @param {Said} said
 */
export function paintFront(context, found, size, theme, said) {
  const dots = dotsOf(found, size);
  const foot = size.height - BOTTOM;
  context.font = `12px ${theme.font}`;
  context.textBaseline = "middle";
  context.strokeStyle = theme.faint;
  context.setLineDash([4, 4]);
  line(context, [
    { x: LEFT, y: TOP },
    { x: size.width - LEFT, y: TOP },
  ]);
  context.setLineDash([]);
  line(context, [
    { x: LEFT, y: foot },
    { x: size.width - LEFT, y: foot },
  ]);
  context.fillStyle = theme.faint;
  context.textAlign = "left";
  context.fillText(said.card, LEFT, TOP - 10);
  context.fillText(said.first, LEFT, foot + 12);
  context.textAlign = "right";
  context.fillText(said.last, size.width - LEFT, foot + 12);
  context.strokeStyle = theme.accent;
  line(
    context,
    dots.filter(({ isFront }) => isFront),
  );
  for (const { isFront, layout, x, y } of dots) {
    const isPicked = said.isPicked(layout);
    context.beginPath();
    context.arc(x, y, isPicked ? RADIUS + 2 : RADIUS, 0, 2 * Math.PI);
    context.fillStyle = isPicked ? theme.text : isFront ? theme.accent : theme.faint;
    context.fill();
  }
}

/** @param {CanvasRenderingContext2D} context @param {{x: number, y: number}[]} points */
function line(context, points) {
  context.beginPath();
  points.forEach(({ x, y }) => context.lineTo(x, y));
  context.stroke();
}
