// Starts the page.

import { chosenLanguage } from "./base/i18n.js";
import { startReport } from "./base/kept.js";
import { askSeveral } from "./base/questions.js";
import { listenToControls, listenToPageKeys } from "./desk/controls.js";
import { Page } from "./desk/page.js";
import { publish } from "./desk/readback.js";
import { listenToSkip } from "./desk/skip.js";

startReport();
const page = new Page();
listenToControls(page, async () => {
  const { openExports } = await import("./export/later.js");
  openExports(page);
});
listenToPageKeys(page);
listenToSkip();
publish(page);
const lang = chosenLanguage(page.store.state.lang, navigator.languages);
// The document names the same address, so that the answer is on its way before this is read.
await page.waiting.until(
  askSeveral([`words?lang=${lang}`, `page?lang=${lang}`, "cases", "traces", "checks", "openings"]),
);
await page.open();
(window.requestIdleCallback ?? setTimeout)(() => void page.prefetch());
