// The desk's views: the map and the list of groups, each told whom to tell.

import { byId } from "../base/dom.js";
import { GroupList } from "../map/groups.js";
import { t } from "../base/i18n.js";
import { MapView } from "../map/view.js";
import { summary } from "./side/prose.js";
import { tipLines } from "../map/speech.js";
import { hideTip, showTip } from "../base/tip.js";

/** @typedef {import("./desk.js").Desk} Desk */

/** Makes the map. @param {Desk} desk */
export function makeMap(desk) {
  const view = new MapView(
    byId("map-frame"),
    byId("map-base"),
    byId("map"),
    {
      hover: (rank) => {
        desk.hover(rank < 0 ? null : { type: "rank", rank });
        if (rank < 0 || !desk.scene) return hideTip();
        const { x, y } = view.pointerOnPage();
        const heat = desk.heats.line(rank);
        showTip([...tipLines(desk.scene, rank), ...(heat ? [heat] : [])], x, y);
      },
      pin: (rank) => desk.pin(rank < 0 ? null : { type: "rank", rank }),
      moved: () => desk.moved(),
    },
    {
      box: (number, byStage) => t(byStage ? "map.stage" : "map.node", { number }),
      stage: (number) => t("map.stage", { number }),
    },
  );
  return view;
}

/** Makes the list of groups. @param {Desk} desk */
export function makeList(desk) {
  return new GroupList({
    hover: (kind, group) => desk.hover(group < 0 ? null : { type: "group", kind, group }),
    pin: (kind, group) => desk.pin({ type: "group", kind, group }),
    heading: (kind) =>
      desk.scene ? `${desk.scene.kinds[kind].label} · ${summary(desk.scene, kind)}` : "",
  });
}
