// Ways in for launch files: dropped anywhere, chosen, pasted; each ends in the same files.

import { byId } from "../../base/dom.js";
import { t } from "../../base/i18n.js";
import { chosen, dropped } from "./gathered.js";
import { textFile } from "./files.js";

/** @typedef {import("./gathered.js").Gathered} Gathered */

/**
 * @typedef {object} Take
 * @property {(files: Promise<Gathered[]> | Gathered[]) => void} files
 * @property {(file: import("./files.js").LaunchFile) => void} text
 */

/** Listens for launch files. @param {Take} take */
export function listenForFiles(take) {
  listenToDrops(take);
  listenToDialog(take);
  document.addEventListener("paste", (event) => {
    if (isField(event.target) || !event.clipboardData) return;
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain");
    if (files.length) take.files(chosen(files));
    else if (text.trim()) take.text(pasted(text));
    else return;
    event.preventDefault();
  });
}

/** @param {Take} take */
function listenToDrops(take) {
  const shade = byId("drop");
  for (const kind of /** @type {const} */ (["dragenter", "dragover"])) {
    window.addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      shade.hidden = false;
    });
  }
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) shade.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    shade.hidden = true;
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    dialog().close();
    take.files(dropped(event.dataTransfer));
  });
}

/** @param {Take} take */
function listenToDialog(take) {
  const text = /** @type {HTMLTextAreaElement} */ (byId("launch-text"));
  const read = /** @type {HTMLButtonElement} */ (byId("launch-read"));
  byId("launch-open").addEventListener("click", () => dialog().showModal());
  byId("launch-close").addEventListener("click", () => dialog().close());
  for (const what of ["files", "folder"]) {
    const chooser = /** @type {HTMLInputElement} */ (byId(`launch-${what}`));
    byId(`launch-choose-${what}`).addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      dialog().close();
      take.files(chosen([...(chooser.files ?? [])]));
      chooser.value = "";
    });
  }
  text.addEventListener("input", () => (read.disabled = !text.value.trim()));
  read.addEventListener("click", () => {
    dialog().close();
    take.text(pasted(text.value));
  });
}

/** @param {string} text */
function pasted(text) {
  return textFile(t("launch.pasted"), text);
}

/** @returns {HTMLDialogElement} */
function dialog() {
  return /** @type {HTMLDialogElement} */ (byId("launch"));
}

/** @param {EventTarget | null} target */
function isField(target) {
  return (
    target instanceof HTMLElement &&
    Boolean(target.closest("input:not([type=checkbox]), textarea, select"))
  );
}
