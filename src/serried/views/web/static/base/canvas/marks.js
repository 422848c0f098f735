// The marks of the dimensions: a shape each, and the slots that marks take in a rank's cell.

/**
 * Corners of a regular shape, the first one straight up.
 * @param {number} count
 * @param {number} [turn]
 */
const regular = (count, turn = 0) =>
  Array.from({ length: count }, (_, i) => {
    const angle = ((i + turn) / count) * 2 * Math.PI - Math.PI / 2;
    return [Math.cos(angle), Math.sin(angle)];
  });

const star = Array.from({ length: 10 }, (_, i) => {
  const angle = (i / 10) * 2 * Math.PI - Math.PI / 2;
  const reach = i % 2 ? 0.55 : 1.05;
  return [reach * Math.cos(angle), reach * Math.sin(angle)];
});
const THIN = 0.42;

/**
 * Corners of each mark about (0, 0), sized so that all cover about the same area.
 * @type {Record<string, number[][]>}
 */
export const SHAPES = {
  triangle: [
    [0, -1.16],
    [1.17, 0.88],
    [-1.17, 0.88],
  ],
  square: [
    [-0.86, -0.86],
    [0.86, -0.86],
    [0.86, 0.86],
    [-0.86, 0.86],
  ],
  pentagon: regular(5).map(([x, y]) => [1.06 * x, 1.06 * y + 0.08]),
  hexagon: regular(6, 0.5),
  diamond: [
    [0, -1.12],
    [1.12, 0],
    [0, 1.12],
    [-1.12, 0],
  ],
  circle: regular(24),
  star,
  plus: [
    [-THIN, -1],
    [THIN, -1],
    [THIN, -THIN],
    [1, -THIN],
    [1, THIN],
    [THIN, THIN],
    [THIN, 1],
    [-THIN, 1],
    [-THIN, THIN],
    [-1, THIN],
    [-1, -THIN],
    [-THIN, -THIN],
  ],
  trapezium: [
    [-0.6, -0.86],
    [0.6, -0.86],
    [1.1, 0.86],
    [-1.1, 0.86],
  ],
};

/**
 * Where a mark has room for letters, in radii: how far below its middle, and how wide.
 * @type {Record<string, {down: number, wide: number}>}
 */
export const LETTER_ROOM = {
  triangle: { down: 0.42, wide: 1.26 },
  diamond: { down: 0, wide: 1.3 },
  star: { down: 0.05, wide: 1.1 },
};
export const USUAL_ROOM = { down: 0, wide: 1.56 };

/**
 * Adds the outline of a mark to the path of `context`.
 * @param {CanvasRenderingContext2D | Path2D} context
 * @param {string} mark
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function traceMark(context, mark, x, y, radius) {
  const corners = SHAPES[mark];
  context.moveTo(x + corners[0][0] * radius, y + corners[0][1] * radius);
  for (const [dx, dy] of corners) context.lineTo(x + dx * radius, y + dy * radius);
  context.closePath();
}

/**
 * Returns a mark as a picture for the page, in its ink.
 * @param {string} mark
 * @param {string} colour
 * @param {number} [size] in pixels
 */
export function markImage(mark, colour, size = 14) {
  const space = "http://www.w3.org/2000/svg";
  const image = document.createElementNS(space, "svg");
  image.setAttribute("viewBox", "-1.25 -1.25 2.5 2.5");
  image.setAttribute("width", String(size));
  image.setAttribute("height", String(size));
  image.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, "polygon");
  shape.setAttribute("points", SHAPES[mark].map((corner) => corner.join(",")).join(" "));
  shape.setAttribute("fill", colour);
  image.append(shape);
  return image;
}
