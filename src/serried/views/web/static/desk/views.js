// The views of the layout: the map and the list of groups, each told whom to tell.

import { byId } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { litBy } from "../base/lit.js";
import { hideTip, showTip } from "../base/tip.js";
import { GroupList } from "../map/groups.js";
import { tipLines } from "../map/speech.js";
import { MapView } from "../map/view.js";
import { figureName } from "./heats.js";
import { Beside, jobWords } from "./map/beside.js";
import { CubeChooser } from "./map/cube.js";
import { MapKey } from "./map/key.js";
import { summary } from "./side/prose.js";
import { question } from "./state/fields.js";

/** @typedef {import("./layout.js").LayoutDesk} LayoutDesk */
/** @typedef {import("./selection.js").Selection} Selection */
/**
 * @typedef {object} Told
 * @property {(rank: number) => string[]} figures  what to say of a rank's figures, "" for nothing
 * @property {() => void} moved                 the map has been moved by hand
 * @property {() => void} painted               the map was drawn anew
 */

/**
 * Makes the map.
 * @param {LayoutDesk} layout
 * @param {Selection} selection
 * @param {Told} told
 */
export function makeMap(layout, selection, { figures, moved, painted }) {
  const view = new MapView(
    byId("map-frame"),
    byId("map-base"),
    byId("map"),
    {
      hover: (rank) => {
        selection.hover(rank < 0 ? null : { type: "rank", rank });
        if (rank < 0 || !layout.scene) return hideTip();
        const { x, y } = view.pointerOnPage();
        showTip([...tipLines(layout.scene, rank), ...figures(rank).filter(Boolean)], x, y);
      },
      pin: (rank) => selection.pin(rank < 0 ? null : { type: "rank", rank }),
      moved,
      painted,
    },
    {
      item: (level, number) => t(`map.${level}`, { number }),
      stage: (number) => t("map.stage", { number }),
    },
  );
  return view;
}

/**
 * Makes what stands around the map: its key, and the chooser of its cube.
 * @param {LayoutDesk} layout
 * @param {MapView} map
 * @param {import("./heats.js").HeatDesk} heats
 */
export function makeMapTools(layout, map, heats) {
  const key = new MapKey(map, {
    named: figureName,
    measure: (scale) => {
      layout.store.step({ scale });
      heats.show();
    },
  });
  const cube = new CubeChooser({
    state: () => layout.store.state,
    scene: () => layout.scene,
    edit: (change) => layout.edit(change),
  });
  return { cube, key, beside: makeBeside(layout, map) };
}

/** Makes the map of a layout beside. @param {LayoutDesk} layout @param {MapView} map */
function makeBeside(layout, map) {
  const ask = () => question(layout.store.state, language());
  const other = new MapView(
    byId("beside-frame"),
    /** @type {HTMLCanvasElement} */ (byId("beside-base")),
    /** @type {HTMLCanvasElement} */ (byId("beside-map")),
    {
      hover: (rank) => {
        const { scene } = other;
        other.light(scene && rank >= 0 ? litBy(scene, { type: "rank", rank }) : null, -1);
        if (!scene || rank < 0) return hideTip();
        const { x, y } = other.pointerOnPage();
        showTip(tipLines(scene, rank), x, y);
      },
      pin: () => undefined,
      moved: () => map.take(String(other)),
      painted: () => undefined,
    },
    map.names,
  );
  return new Beside(map, other, {
    state: () => layout.store.state,
    frameworks: () => layout.words?.frameworks ?? [],
    question: ask,
    job: () => jobWords(ask()),
    edit: (beside) => layout.edit({ beside }),
  });
}

/** Makes the list of groups. @param {LayoutDesk} layout @param {Selection} selection */
export function makeList(layout, selection) {
  return new GroupList({
    hover: (kind, group) => selection.hover(group < 0 ? null : { type: "group", kind, group }),
    pin: (kind, group) => selection.pin({ type: "group", kind, group }),
    heading: (kind) => {
      const { scene } = layout;
      return scene ? `${scene.kinds[kind].label} · ${summary(scene, kind)}` : "";
    },
  });
}
