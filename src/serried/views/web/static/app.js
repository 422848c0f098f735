// The page: one state, which the address bar holds; every view shows it, and every view changes it.

import { keyViews } from "./controls.js";
import { Desk } from "./desk.js";
import { enterSearch } from "./finder.js";
import { listenToKeys } from "./keys.js";
import { publish } from "./readback.js";
import { ScheduleDesk } from "./scheduledesk.js";

const desk = new Desk();
const schedules = new ScheduleDesk(desk);
const { view } = schedules;
listenToKeys(
  [...keyViews(desk), { canvas: view.surface.canvas, moves: view, key: (event) => schedules.key(event) }],
  {
    search: (view) => schedules.isOpen ? schedules.seek.enter() : (view?.canvas === desk.timeline.surface.canvas ? desk.seeks.enter() : enterSearch()),
    clear: () => (schedules.isOpen ? schedules : desk).clear(),
  },
);
publish(desk, schedules);
await desk.open();
