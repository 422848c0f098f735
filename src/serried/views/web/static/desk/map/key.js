// The key of the map: what a cell's one colour stands for, from which value to which, and in which
// unit; nothing where cells show a mark for each kind, which the legend tells.

import { byId, keepHeight, make } from "../../base/dom.js";
import { language, number, t } from "../../base/i18n.js";
import { css } from "../../base/theme.js";
import { stateKey } from "../../diagnose/words.js";
import { rampColour } from "../../map/heat.js";

/** @typedef {import("../../map/heat.js").Heat} Heat */
/** @typedef {import("../../map/shade.js").Shade} Shade */
/**
 * @typedef {object} MapOf  the map, as its key knows it
 * @property {Heat | null} heat
 * @property {Shade} shade
 * @property {boolean} isMarked  whether cells show marks now
 * @property {boolean} isDrawn
 * @property {string} by         what was chosen to fill cells, "" for marks
 */
/**
 * @typedef {object} Host
 * @property {(figure: string) => string} named    a figure in words
 * @property {(scale: string) => void} measure     chooses another scale of the figure
 */

const STOPS = 16;

/** Shows what colours mean. */
export class MapKey {
  /** @param {MapOf} map @param {Host} host */
  constructor(map, host) {
    this.map = map;
    this.host = host;
    this.shown = "";
  }

  /** Shows anew what has changed. */
  show() {
    const { heat, shade, isMarked, isDrawn, by } = this.map;
    const { low, high } = heat?.span ?? { low: 0, high: 0 };
    const key = [language(), isDrawn, isMarked, by, shade.by, shade.name, shade.count, shade.ramp]
      .concat(heat ? [heat.figure, heat.scale, String(low), String(high)] : [])
      .concat(heat ? Object.values(heat.counts).map(String) : [])
      .join();
    if (key === this.shown) return;
    this.shown = key;
    const box = byId("map-key");
    box.hidden = !isDrawn || isMarked;
    // Whether cells have room for marks hangs on the map's height, which is the same with the key
    // of cells that have none: it stands on the map, in the room that the map leaves there.
    box.classList.toggle("on-map", !heat && !by);
    box.style.minHeight = "";
    if (box.hidden) return;
    if (heat?.unit === "state") return box.replaceChildren(...stateKey(heat.counts, shade.ramp));
    box.replaceChildren(...(heat ? this._figure(heat, shade.ramp) : order(shade, by)));
    if (heat) keepHeight(box, `${box.clientWidth} ${language()} ${heat.figure}`);
  }

  /** @param {Heat} heat @param {string[]} ramp */
  _figure(heat, ramp) {
    const { low, high } = heat.span;
    const bar = rampBar(ramp);
    const mark = make("i", { title: `${t("heat.median")} ${heat.text(heat.median)}` });
    mark.style.left = `${100 * heat.level(heat.median)}%`;
    bar.append(mark);
    const names = Object.keys(heat.scales);
    const scales = names.map((name) =>
      make(
        "button",
        {
          type: "button",
          "aria-pressed": String(name === heat.scale),
          title: t(`scale.${name}_title`),
          click: () => this.host.measure(name === heat.usual ? "" : name),
        },
        t(`scale.${name}`),
      ),
    );
    return [
      make("b", {}, this.host.named(heat.figure)),
      make("span", {}, heat.text(low)),
      bar,
      make("span", {}, heat.text(high)),
      make("span", { class: "note" }, `${t("heat.median")} ${heat.text(heat.median)}`),
      make("span", { class: "scales", role: "group", "aria-label": t("scale.title") }, ...scales),
    ];
  }
}

/** @param {Shade} shade @param {string} by */
function order({ by: what, name, count, ramp }, by) {
  const hint = by ? [] : [make("span", { class: "note" }, t("key.zoom"))];
  if (count < 2) return [make("b", {}, t("key.alike")), ...hint];
  const told = what === "stage" ? t("key.stage") : t("key.group", { kind: name });
  return [
    make("b", {}, told),
    make("span", {}, "0"),
    rampBar(ramp),
    make("span", {}, number(count - 1)),
    ...hint,
  ];
}

/** @param {string[]} ramp */
function rampBar(ramp) {
  const bar = make("span", { class: "ramp", "aria-hidden": "true" });
  const colours = Array.from({ length: STOPS }, (_, i) => css(rampColour(ramp, i / (STOPS - 1))));
  bar.style.background = `linear-gradient(to right, ${colours.join(",")})`;
  return bar;
}
