// What the buttons, the selects and the keys of the page do to the desk.

import { announce } from "../base/announcer.js";
import { byId, copyText } from "../base/dom.js";
import { listenForFiles } from "./launch/drop.js";
import { listenToSearch } from "./finder.js";
import { listenToForm } from "./side/form.js";
import { language, t } from "../base/i18n.js";
import { openHelp } from "./keys.js";
import { listenToReading } from "./launch/panel.js";
import { listenToSplitter } from "./splitter.js";

/** @typedef {import("./desk.js").Desk} Desk */

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Listens to every control of the page. @param {Desk} desk */
export function listenToControls(desk) {
  listenToForm(
    () => desk.state,
    (change, field) => desk.edit(change, field),
    () => desk.reset(),
  );
  byId("job").addEventListener("focusout", () => (desk.address.typedInto = ""));
  onClick("language", () => desk.edit({ lang: language() === "zh" ? "en" : "zh" }));
  onClick("help", openHelp);
  onClick("keys-close", () => /** @type {HTMLDialogElement} */ (byId("keys")).close());
  onClick("map-fit", () => desk.map.fit());
  onClick("timeline-fit", () => desk.timeline.fit());
  onClick("own-layout", () => desk.showOwnLayout());
  onChoice("arrange", (arrange) => desk.edit({ arrange }));
  onChoice("trace", (trace) => desk.showTrace(trace));
  copies("copy-link", () => location.href);
  copies("copy-groups", () => desk.list.text());
  copies("copy-json", () => desk.list.json());
  copies("copy-command", () => desk.scene?.command ?? "");
  byId("map").addEventListener("blur", () => {
    desk.map.blur();
    desk.hover(null);
  });
  const { launch } = desk;
  listenForFiles({
    files: (files) => launch.takeFiles(files),
    text: (file) => launch.takeText(file),
  });
  listenToReading(
    (answers) => launch.answer(answers),
    () => launch.close(),
  );
  listenToSearch(desk);
  listenToSplitter();
}

/**
 * Returns the desk's views that take keys.
 * @param {Desk} desk
 * @returns {import("./keys.js").View[]}
 */
export function keyViews(desk) {
  const { map, timeline } = desk;
  return [
    { canvas: map.above.canvas, moves: map, key: (event) => mapKey(desk, event) },
    { canvas: timeline.surface.canvas, moves: timeline, key: (event) => desk.timelines.key(event) },
  ];
}

/** @param {string} id @param {() => void} act */
function onClick(id, act) {
  byId(id).addEventListener("click", act);
}

/** @param {string} id @param {(value: string) => void} act */
function onChoice(id, act) {
  byId(id).addEventListener("change", (event) =>
    act(/** @type {HTMLSelectElement} */ (event.target).value),
  );
}

/** @param {string} id @param {() => string} text */
function copies(id, text) {
  const button = byId(id);
  onClick(id, () => announce(t(copyText(text()) ? "copy.done" : "copy.failed"), button));
}

/** Moves the keyboard's rank, or keeps it. @param {Desk} desk @param {KeyboardEvent} event */
function mapKey(desk, event) {
  if (!desk.isDrawn) return false;
  const [dx, dy] = ARROWS[event.key] ?? [0, 0];
  if (dx || dy) desk.focusRank(desk.map.focus(dx, dy, desk.pinnedRank));
  else if ((event.key === "Enter" || event.key === " ") && desk.map.focused >= 0)
    desk.choose(desk.map.focused);
  else return false;
  return true;
}
