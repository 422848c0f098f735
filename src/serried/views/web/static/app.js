// The page: one state, which the address bar holds; every view shows it, and every view changes it.

import { keyViews } from "./desk/controls.js";
import { Desk } from "./desk/desk.js";
import { enterSearch } from "./desk/finder.js";
import { listenToKeys } from "./desk/keys.js";
import { publish } from "./desk/readback.js";
import { ScheduleDesk } from "./schedule/desk.js";

const desk = new Desk();
const schedules = new ScheduleDesk(desk);
const { view } = schedules;
listenToKeys(
  [
    ...keyViews(desk),
    { canvas: view.surface.canvas, moves: view, key: (event) => schedules.key(event) },
  ],
  {
    search: (view) =>
      schedules.isOpen
        ? schedules.seek.enter()
        : view?.canvas === desk.timeline.surface.canvas
          ? desk.seeks.enter()
          : enterSearch(),
    clear: () => (schedules.isOpen ? schedules : desk).clear(),
  },
);
publish(desk, schedules);
await desk.open();
