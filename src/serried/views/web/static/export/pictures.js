// The pictures of the tab in view as files: what the canvases show, as pixels or as a drawing.

import { byId } from "../base/dom.js";
import { theme } from "../base/theme.js";
import { DrawnPixels } from "./drawn.js";
import { Vector, escaped } from "./vector.js";

/** @typedef {import("../base/canvas/surface.js").Surface} Surface */
/** @typedef {import("../map/view.js").MapView} MapView */
/** @typedef {{pixels: unknown}} Holder  a view that paints pixels */
/** @typedef {{surface: Surface, draw: () => void}} Layer */
/**
 * @typedef {object} Picture
 * @property {string} name      what a file of it is called
 * @property {string} key       the sentence that names it
 * @property {Layer[]} layers   from the lowest
 * @property {Holder} [holder]  whose pixels are drawn as shapes instead
 * @property {null} [without]   the pixels of a map, which has shapes of its own
 * @property {string} [beside]  an element whose words stand over the picture
 */

/** Returns the pictures that are in view. @param {import("../desk/page.js").Page} page */
export function picturesOf(page) {
  return [...mapOf(page), ...runOf(page), ...scheduleOf(page), ...planOf(page)].filter(
    ({ layers }) => isSeen(layers[0]),
  );
}

/** @param {import("../desk/page.js").Page} page @returns {Picture[]} */
function mapOf({ diagnosis, layout, map, plan, player, sharding, tools }) {
  const draw = map.redraw.draw;
  const nothing = () => {};
  const layers = [{ surface: map.below, draw }];
  const traffic = plan.desk?.traffic;
  if (traffic) layers.push({ surface: traffic.surface, draw: traffic.redraw.draw });
  layers.push({ surface: diagnosis.arrows.surface, draw: diagnosis.arrows.redraw.draw });
  const played = player.desk;
  if (played) layers.push({ surface: played.trails, draw: played.redraw.draw });
  layers.push({ surface: map.above, draw: nothing }, ...outlinesOf(map));
  const name = `map-${layout.scene?.worldSize ?? 0}`;
  const shards = sharding.desk;
  return [
    { name, key: "export.map", layers, holder: map, without: null },
    ...besideOf(tools.beside.other),
    ...playedOf(played),
    ...(shards
      ? [
          {
            name: "zero",
            key: "export.zero",
            layers: [{ surface: shards.surface, draw: shards.redraw.draw }],
          },
        ]
      : []),
  ];
}

/** Returns the outlines of what differs. @param {MapView} map @returns {Layer[]} */
function outlinesOf({ differing: { surface } }) {
  return surface ? [{ surface, draw: () => {} }] : [];
}

/** @param {MapView} other @returns {Picture[]} */
function besideOf(other) {
  if (!other.scene) return [];
  const layers = [
    { surface: other.below, draw: other.redraw.draw },
    { surface: other.above, draw: () => {} },
    ...outlinesOf(other),
  ];
  const name = `map-beside-${other.scene.worldSize}`;
  return [{ name, key: "export.beside", layers, holder: other, without: null }];
}

/**
 * Returns a picture of each algorithm in the player.
 * @param {import("../collective/desk.js").CollectiveDesk | null} desk
 * @returns {Picture[]}
 */
function playedOf(desk) {
  const { draw } = desk?.redraw ?? {};
  return (draw && desk?.isOpen ? desk.stage.pictures : []).flatMap(({ execution, surface }) => {
    if (!execution || !draw) return [];
    const { name, algorithm } = execution.header;
    const layers = [{ surface, draw }];
    return [{ name: `play-${name}-${algorithm}`, key: "collective.title", layers }];
  });
}

/** @param {import("../desk/page.js").Page} page @returns {Picture[]} */
function runOf({ runs, timelines: { view } }) {
  const name = `timeline-${runs.offer?.name ?? "planned-step"}`;
  const layers = [
    { surface: view.surface, draw: view.redraw.draw },
    { surface: view.above, draw: () => {} },
  ];
  return [{ name, key: "export.timeline", layers, holder: view }];
}

/** @param {import("../desk/page.js").Page} page @returns {Picture[]} */
function scheduleOf({ schedules, store }) {
  const view = schedules.desk?.view;
  if (!view) return [];
  const name = `schedule-${store.state.name.replaceAll(",", "-")}`;
  const layers = [
    { surface: view.surface, draw: view.redraw.draw },
    { surface: view.axis, draw: () => {} },
  ];
  return [{ name, key: "export.schedule", layers, holder: view, beside: "schedule-heads" }];
}

/** @param {import("../desk/page.js").Page} page @returns {Picture[]} */
function planOf({ plan: { desk } }) {
  if (!desk) return [];
  const of = (/** @type {{surface: Surface, redraw: {draw: () => void}}} */ part) => [
    { surface: part.surface, draw: part.redraw.draw },
  ];
  return [
    { name: "memory", key: "export.memory", layers: of(desk) },
    { name: "traffic-matrix", key: "export.matrix", layers: of(desk.matrix) },
    { name: "search", key: "export.front", layers: of(desk.search.picture) },
  ];
}

/** Returns a picture as an SVG. @param {Picture} picture */
export function drawingOf({ layers: all, holder, without, beside }) {
  const layers = all.filter(isSeen);
  const pixels = holder?.pixels;
  const contexts = layers.map(({ surface }) => surface.context);
  const pens = layers.map(({ surface }) => new Vector(surface.density));
  const { box, left, top } = frameOf(layers);
  try {
    if (holder) holder.pixels = without === null ? null : new DrawnPixels();
    layers.forEach(({ surface }, i) => Object.assign(surface, { context: pens[i] }));
    layers.forEach(({ draw }) => draw());
  } finally {
    layers.forEach(({ surface }, i) => Object.assign(surface, { context: contexts[i] }));
    if (holder) holder.pixels = pixels;
  }
  layers.forEach(({ draw }) => draw());
  const parts = pens.map((pen, i) => {
    const { x, y } = placeOf(layers[i], left, top);
    // Each layer names its clips and textures for itself.
    const text = pen.text().replace(/(id="|url\(#)/g, `$1l${i}`);
    return `<g transform="translate(${x} ${y})">${text}</g>`;
  });
  const words = wordsOf(beside).map(({ text, x, y, size, weight, colour }) => {
    const look = `font-family="${escaped(theme().font)}" font-size="${size}" fill="${colour}"`;
    const at = `x="${x - left}" y="${y - top}" font-weight="${weight}"`;
    return `<text ${at} ${look}>${escaped(text)}</text>`;
  });
  const size = `width="${box.width}" height="${box.height}"`;
  const ground = `<rect ${size} fill="${theme().box}"/>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${box.width} ${box.height}">` +
    `${ground}${parts.join("")}${words.join("")}</svg>`
  );
}

/** Returns a picture as a PNG. @param {Picture} picture */
export function pixelsOf({ layers, beside }) {
  const { box, left, top } = frameOf(layers);
  const density = layers[0].surface.density;
  const canvas = Object.assign(document.createElement("canvas"), {
    width: Math.round(box.width * density),
    height: Math.round(box.height * density),
  });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(density, density);
  context.fillStyle = theme().box;
  context.fillRect(0, 0, box.width, box.height);
  for (const layer of layers) {
    const { canvas: drawn, width, height } = layer.surface;
    const { x, y } = placeOf(layer, left, top);
    // A layer that was never drawn on has a size of its own.
    if (isSeen(layer)) context.drawImage(drawn, x, y, width, height);
  }
  for (const { text, x, y, size, weight, colour } of wordsOf(beside)) {
    context.font = `${weight} ${size}px ${theme().font}`;
    context.fillStyle = colour;
    context.fillText(text, x - left, y - top);
  }
  // toBlob() waits for the page to be idle, which may take it seconds, or for ever.
  const [, text] = canvas.toDataURL("image/png").split(",");
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Blob([bytes], { type: "image/png" });
}

/** Returns the box that holds all layers, and where it stands. @param {Layer[]} layers */
function frameOf(layers) {
  const boxes = layers
    .filter(isSeen)
    .map(({ surface: { canvas } }) => canvas.getBoundingClientRect());
  const left = Math.min(...boxes.map((each) => each.left));
  const top = Math.min(...boxes.map((each) => each.top));
  const width = Math.round(Math.max(...boxes.map((each) => each.right)) - left);
  const height = Math.round(Math.max(...boxes.map((each) => each.bottom)) - top);
  return { box: { width, height }, left, top };
}

/** @param {Layer} layer */
function isSeen({ surface: { canvas, width } }) {
  return width > 0 && canvas.checkVisibility();
}

/** @param {Layer} layer @param {number} left @param {number} top */
function placeOf({ surface: { canvas } }, left, top) {
  const { x, y } = canvas.getBoundingClientRect();
  return { x: Math.round(x - left), y: Math.round(y - top) };
}

/**
 * Returns the words that stand over a picture, each where its letters stand.
 * @param {string} [id]
 */
function wordsOf(id) {
  if (!id) return [];
  const walker = document.createTreeWalker(byId(id), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent?.trim() ?? "";
    const parent = node.parentElement;
    if (!text || !parent?.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const { left: x, bottom, height } = range.getBoundingClientRect();
    const { color: colour, fontSize, fontWeight: weight } = getComputedStyle(parent);
    found.push({ text, x, y: bottom - 0.22 * height, size: parseFloat(fontSize), weight, colour });
  }
  return found;
}
