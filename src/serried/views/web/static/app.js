// Starts the page.

import { listenToControls, listenToPageKeys } from "./desk/controls.js";
import { Page } from "./desk/page.js";
import { publish } from "./desk/readback.js";
import { ScheduleDesk } from "./schedule/desk.js";

const page = new Page();
const schedules = new ScheduleDesk(page.store);
listenToControls(page);
listenToPageKeys(page, schedules);
publish(page, schedules);
await page.open();
