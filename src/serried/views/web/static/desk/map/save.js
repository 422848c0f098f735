// The picture of the map as a file: what the canvases show, on the page's own ground, as a PNG.

import { byId, make } from "../../base/dom.js";
import { theme } from "../../base/theme.js";

/** The canvases of the map, from the lowest. */
const LAYERS = ["map-base", "map-links", "map-moves", "map"];

/** Listens to the button. @param {() => string} name  of the file, its ending left out */
export function listenToSave(name) {
  byId("map-png").addEventListener("click", () => {
    const blob = new Promise((done) => drawn().toBlob(done, "image/png"));
    void blob.then((made) => made && download(/** @type {Blob} */ (made), `${name()}.png`));
  });
}

/** Returns all layers on one canvas. */
function drawn() {
  const layers = LAYERS.map((id) => /** @type {HTMLCanvasElement} */ (byId(id)));
  const [{ width, height }] = layers;
  const canvas = make("canvas", { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = theme().box;
  context.fillRect(0, 0, width, height);
  // A layer that was never drawn on has a size of its own.
  for (const layer of layers) if (layer.width === width) context.drawImage(layer, 0, 0);
  return canvas;
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
