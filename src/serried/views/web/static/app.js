// Starts the page.

import { listenToControls, listenToPageKeys } from "./desk/controls.js";
import { Page } from "./desk/page.js";
import { publish } from "./desk/readback.js";

const page = new Page();
listenToControls(page);
listenToPageKeys(page);
publish(page);
await page.open();
