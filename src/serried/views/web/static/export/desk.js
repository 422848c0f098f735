// The menu of what the tab in view can be saved as: pictures, tables, and the launch config.

import { byId, make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { Refusal, askDocument } from "../base/questions.js";
import { question } from "../desk/state/fields.js";
import { drawingOf, picturesOf, pixelsOf } from "./pictures.js";
import { csvOf, jsonOf, tablesOf } from "./tables.js";

/** @typedef {import("../desk/page.js").Page} Page */
/** @typedef {{form: string, make: () => Promise<Blob> | Blob}} Way */
/** @typedef {(title: string, name: string, ways: Way[]) => HTMLElement} Line */

/** Shows what can be saved. @param {Page} page */
export function openExports(page) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("exports"));
  const line = lineOf(page);
  const pictures = picturesOf(page).map((picture) =>
    line(t(picture.key), picture.name, [
      { form: "png", make: () => pixelsOf(picture) },
      { form: "svg", make: () => blob(drawingOf(picture), "image/svg+xml") },
    ]),
  );
  const tables = tablesOf(page).map(({ key, name, rows, document: own }) =>
    line(t(key), name, [
      { form: "csv", make: async () => blob(csvOf(await rows()), "text/csv") },
      {
        form: "json",
        make: async () => blob(await (own?.() ?? jsonOf(await rows())), "application/json"),
      },
    ]),
  );
  const hasJob = page.layout.scene;
  byId("exports-list").replaceChildren(
    ...part("export.pictures", pictures),
    ...part("export.tables", tables),
    ...part("export.job", hasJob ? [launchLine(page, line)] : []),
    ...part("learn.card", cardLines(page, line)),
  );
  byId("exports-none").hidden = Boolean(pictures.length + tables.length) || Boolean(hasJob);
  byId("exports-told").textContent = "";
  dialog.showModal();
}

/** @param {string} key @param {HTMLElement[]} lines */
function part(key, lines) {
  return lines.length ? [make("h3", {}, t(key)), make("ul", {}, ...lines)] : [];
}

/**
 * Returns what makes a line of the menu; the page is busy until a file is saved.
 *
 * @param {Page} page
 * @returns {Line}
 */
function lineOf({ waiting }) {
  return (title, name, ways) => {
    const buttons = ways.map(({ form, make: made }) => {
      const file = `serried-${fileName(name)}.${form}`;
      const label = `${title}, ${form.toUpperCase()}`;
      const save = () => void waiting.until(saved(made, file));
      const about = { type: "button", title: file, "aria-label": label, "data-form": form };
      return make("button", { ...about, click: save }, form.toUpperCase());
    });
    return make("li", { "data-export": name }, make("span", {}, title), ...buttons);
  };
}

/** @param {Page} page @param {Line} line */
function launchLine({ layout: { store } }, line) {
  const ask = async () => {
    const words = question(store.state, language());
    const { text } = await askDocument(`layout/written?${words}`);
    return blob(text, "text/plain");
  };
  const [framework] = store.state.framework.split("@");
  return line(t("export.launch"), `launch-${framework}`, [{ form: "txt", make: ask }]);
}

/** Returns the card that is open, to be saved as text. @param {Page} page @param {Line} line */
function cardLines({ store }, line) {
  const card = byId("lesson-card");
  if (!card.checkVisibility() || !card.childElementCount) return [];
  const text = () => blob(card.innerText, "text/plain");
  const title = card.querySelector("h3")?.textContent ?? "";
  return [line(title, `card-${store.state.card}`, [{ form: "txt", make: text }])];
}

/** @param {() => Promise<Blob> | Blob} made @param {string} file */
async function saved(made, file) {
  const told = byId("exports-told");
  try {
    const content = await made();
    await hasTurn();
    download(content, file);
    told.textContent = t("export.saved", { file });
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error);
    told.textContent = error instanceof Refusal ? error.message : t("error.server");
  }
}

/** Chromium saves ten files a second, and passes over the rest without a word. */
const APART_MS = 120;
/** When the next file may be saved. */
let turn = 0;

/** Returns once a file may be saved. */
async function hasTurn() {
  const wait = turn - Date.now();
  turn = Math.max(turn, Date.now()) + APART_MS;
  if (wait > 0) await new Promise((done) => setTimeout(done, wait));
}

/** @param {string} text @param {string} type */
function blob(text, type) {
  return new Blob([text], { type: `${type};charset=utf-8` });
}

/** Returns a name that every system takes. @param {string} name */
function fileName(name) {
  return name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80);
}

/** @param {Blob} made @param {string} name */
function download(made, name) {
  const href = URL.createObjectURL(made);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
