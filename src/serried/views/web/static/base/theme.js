// The colours of the page as the canvases use them: read from the style sheet, light or dark.

/**
 * @typedef {object} Theme
 * @property {boolean} dark
 * @property {string} ground   around all
 * @property {string} box      inside a node
 * @property {string} edge     around a node or a cell
 * @property {string} cell     inside a rank's cell
 * @property {string} text
 * @property {string} faint    secondary text
 * @property {string} veil     over what is not lit
 * @property {string} wait     a span that waits for a message
 * @property {string} wait_line  the slanting lines over it
 * @property {string} letters  on a shade of the palette
 * @property {string} accent   what is pinned
 * @property {string} alarm    what should not be
 * @property {string} font
 */

const dark = matchMedia("(prefers-color-scheme: dark)");
/** What draws again in other colours. @type {(() => void)[]} */
const REDRAWS = [];
let isOnPaper = false;

/**
 * What was read of the style sheet: to read it again would lay out what has changed since.
 * @type {Map<boolean, Theme>}
 */
const found = new Map();

/** Returns the colours in use now. @returns {Theme} */
export function theme() {
  const known = found.get(isDark()) ?? read();
  found.set(isDark(), known);
  return known;
}

function isDark() {
  return dark.matches && !isOnPaper;
}

/** @returns {Theme} */
function read() {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: isDark(),
    ground: colour("ground"),
    box: colour("panel"),
    edge: colour("edge"),
    cell: colour("cell"),
    text: colour("text"),
    faint: colour("faint"),
    veil: colour("veil"),
    wait: colour("wait"),
    wait_line: colour("wait-line"),
    letters: "#10151d",
    accent: colour("accent"),
    alarm: colour("alarm"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

/** Calls `redraw` when the page turns dark or light. @param {() => void} redraw */
export function onThemeChange(redraw) {
  REDRAWS.push(redraw);
  dark.addEventListener("change", redraw);
}

/** Turns a dark page light, as paper is white; returns what turns it back, null if it is light. */
export function lightForPaper() {
  if (!dark.matches) return null;
  const turn = (/** @type {boolean} */ toPaper) => {
    isOnPaper = document.documentElement.toggleAttribute("data-paper", toPaper);
    for (const redraw of REDRAWS) redraw();
  };
  turn(true);
  return () => turn(false);
}

/**
 * Returns the strong colour of a kind in a theme.
 * @param {import("./scene.js").Kind} kind
 * @param {Theme} colours
 */
export function inkOf(kind, colours) {
  return colours.dark ? kind.ink_on_dark : kind.ink;
}

/** Writes 0xRRGGBB for CSS. @param {number} rgb */
export function css(rgb) {
  return `#${rgb.toString(16).padStart(6, "0")}`;
}

/**
 * Returns 0xRRGGBB or "#rrggbb" as a pixel of ImageData, opaque.
 * @param {number | string} colour
 */
export function pixel(colour) {
  const rgb = typeof colour === "number" ? colour : parseInt(colour.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}
