// What the buttons, the selects and the keys of the page do to its parts.

import { announce } from "../base/announcer.js";
import { byId, copyText } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { hideTip } from "../base/tip.js";
import { enterSearch, leaveSearch, listenToSearch } from "./finder.js";
import { listenToKeys, openHelp } from "./keys.js";
import { listenForFiles } from "./launch/drop.js";
import { listenToReading } from "./launch/panel.js";
import { listenToForm } from "./side/form.js";
import { listenToSplitter } from "./splitter.js";

/** @typedef {import("./page.js").Page} Page */

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Listens to every control of the page.
 * @param {Page} page
 * @param {() => Promise<unknown>} openExports  opens the menu of what can be saved
 */
export function listenToControls(page, openExports) {
  const { launch, layout, list, map, opener, runs, selection, store, timelines } = page;
  listenToForm(
    () => store.state,
    (change, field) => layout.edit(change, field),
    () => page.reset(),
  );
  byId("job").addEventListener("focusout", () => store.leaveField());
  onClick("language", () => layout.edit({ lang: language() === "zh" ? "en" : "zh" }));
  onClick("help", openHelp);
  onClick("export", () => page.waiting.until(openExports()));
  onClick("exports-close", () => /** @type {HTMLDialogElement} */ (byId("exports")).close());
  onClick("keys-close", () => /** @type {HTMLDialogElement} */ (byId("keys")).close());
  onClick("map-fit", () => map.fit());
  onClick("timeline-fit", () => timelines.view.fit());
  onClick("own-layout", () => runs.showOwnLayout());
  onChoice("arrange", (arrange) => layout.edit({ arrange }));
  onChoice("trace", (trace) => runs.show(trace));
  copies("copy-link", () => location.href);
  copies("copy-groups", () => list.text());
  copies("copy-json", () => list.json());
  copies("copy-command", () => layout.scene?.command ?? "");
  byId("map").addEventListener("blur", () => {
    map.blur();
    selection.hover(null);
  });
  listenForFiles({
    files: (files) => opener.take(files),
    text: (file) => launch.takeText(file),
  });
  listenToReading(
    (answers) => launch.answer(answers),
    () => launch.close(),
  );
  listenToSearch(layout, selection);
  listenToSplitter();
}

/** Sends every key to the view that it is for. @param {Page} page */
export function listenToPageKeys(page) {
  const { map, schedules, store, tabs, timelines } = page;
  const timeline = timelines.view;
  const onSchedules = () => (store.state.view === "schedule" ? schedules.desk : null);
  /** @type {import("./keys.js").View[]} */
  const views = [
    { canvas: map.above.canvas, moves: map, key: (event) => mapKey(page, event) },
    {
      canvas: timeline.surface.canvas,
      moves: timeline,
      key: (event) => timelines.key(event),
    },
    {
      canvas: byId("schedule"),
      get moves() {
        return schedules.desk?.view ?? null;
      },
      key: (event) => schedules.desk?.key(event) ?? false,
    },
  ];
  listenToKeys(views, {
    search: (view) => {
      const stack = onSchedules();
      if (stack) stack.seek.enter();
      else if (view?.canvas === timeline.surface.canvas) timelines.seek.enter();
      else enterSearch();
    },
    clear: () => {
      const stack = onSchedules();
      if (stack) stack.clear();
      else clear(page);
    },
    left: () => tabs.toggleLeft(),
    right: () => page.selection.column.toggle(),
  });
}

/** Clears what is pinned, found and pointed at. @param {Page} page */
function clear({ map, selection, timelines }) {
  hideTip();
  map.blur();
  leaveSearch();
  timelines.clear();
  selection.pin(null);
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

/**
 * Moves the keyboard's rank, or keeps it; true when the key was taken.
 * @param {Page} page
 * @param {KeyboardEvent} event
 */
function mapKey({ layout, map, selection, tools }, event) {
  if (!layout.isDrawn) return false;
  if (event.key.toLowerCase() === "x") {
    tools.cube.turn();
    return true;
  }
  const [dx, dy] = ARROWS[event.key] ?? [0, 0];
  const isChoice = event.key === "Enter" || event.key === " ";
  if (dx || dy) selection.focusRank(map.focus(dx, dy, selection.pinnedRank));
  else if (isChoice && map.focused >= 0) selection.choose(map.focused);
  else return false;
  return true;
}
