// The live picture of a notebook: Python draws it and says which rows are lit; this shows that, and
// says which row was selected. It computes nothing.

/**
 * @typedef {object} Model what anywidget gives: traits of views/notebook/widget.py
 * @property {(name: string) => any} get
 * @property {(name: string, value: unknown) => void} set
 * @property {() => void} save_changes
 * @property {(event: string, listener: () => void) => void} on
 * @property {(event: string, listener: () => void) => void} off
 */

const KEYS = /** @type {Record<string, number>} */ ({
  ArrowLeft: -1,
  ArrowUp: -1,
  ArrowRight: 1,
  ArrowDown: 1,
});

/**
 * Returns the row that a key leads to: the neighbour's, the first or last one, -1 for none; null
 * for a key that leads nowhere.
 * @param {string} key
 * @param {number} row the one selected now, -1 for none
 * @param {number} count
 */
export function rowAfter(key, row, count) {
  if (key === "Escape") return -1;
  if (count === 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (!Object.hasOwn(KEYS, key)) return null;
  if (row < 0) return KEYS[key] > 0 ? 0 : count - 1;
  return Math.min(count - 1, Math.max(0, row + KEYS[key]));
}

/**
 * Returns an element with a class and a text.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} name
 * @param {string} [text]
 */
function made(tag, name, text = "") {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}

/**
 * Marks the rows that are selected.
 * @param {Element} picture
 * @param {{strong?: number[], others?: number[]}} lit
 */
function light(picture, lit) {
  const [strong, others] = [new Set(lit.strong), new Set(lit.others)];
  picture.classList.toggle("serried-lit", strong.size + others.size > 0);
  for (const mark of picture.querySelectorAll("[data-row]")) {
    const row = Number(mark.getAttribute("data-row"));
    mark.classList.toggle("serried-strong", strong.has(row));
    mark.classList.toggle("serried-other", others.has(row));
  }
}

/**
 * Hides the still picture that stands above the live one.
 * @param {HTMLElement} el
 * @param {string} mark
 */
function hideStill(el, mark) {
  for (const root of [document, el.getRootNode()]) {
    const still = /** @type {ParentNode} */ (root).querySelector(`[data-serried="${mark}"]`);
    still?.setAttribute("hidden", "");
    if (still instanceof HTMLElement) still.style.display = "none";
  }
}

/**
 * Returns the choice of the kind of groups that colours tell.
 * @param {Model} model
 */
function kindChoice(model) {
  const label = made("label", "serried-kinds", `${model.get("words").colour} `);
  const select = document.createElement("select");
  for (const kind of model.get("kinds")) select.append(new Option(kind, kind));
  select.value = model.get("kind");
  select.addEventListener("change", () => {
    model.set("kind", select.value);
    model.save_changes();
  });
  label.append(select);
  return label;
}

/**
 * Hears of the row that is selected, by pointer and by key.
 * @param {HTMLElement} picture
 * @param {Model} model
 * @param {(row: number) => void} pick
 */
function listen(picture, model, pick) {
  picture.addEventListener("click", (event) => {
    const mark = /** @type {Element} */ (event.target).closest("[data-row]");
    pick(mark ? Number(mark.getAttribute("data-row")) : -1);
  });
  picture.addEventListener("keydown", (event) => {
    const row = model.get("lit").strong?.[0] ?? -1;
    const next = rowAfter(event.key, row, model.get("num_rows"));
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    pick(next);
  });
}

/**
 * Shows the picture in an element of the notebook.
 * @param {{model: Model, el: HTMLElement}} host
 * @returns {() => void} what ends it
 */
function render({ model, el }) {
  const headline = made("div", "serried-headline", model.get("headline"));
  const picture = made("div", "serried-picture");
  const told = made("div", "serried-told");
  picture.tabIndex = 0;
  picture.title = "";
  picture.setAttribute("role", "group");
  told.setAttribute("aria-live", "polite");
  told.title = model.get("words").how ?? "";
  picture.setAttribute("aria-label", `${model.get("headline")}. ${told.title}`);
  const draw = () => {
    picture.innerHTML = model.get("picture");
    headline.textContent = model.get("headline");
    light(picture, model.get("lit"));
  };
  const show = () => {
    light(picture, model.get("lit"));
    told.textContent = model.get("told");
  };
  listen(picture, model, (row) => {
    // A notebook without a kernel lights the row all the same; with one, Python says what is lit.
    light(picture, { strong: row < 0 ? [] : [row] });
    model.set("picked", { row, turn: (model.get("picked").turn ?? 0) + 1 });
    model.save_changes();
  });
  const heard = { "change:picture": draw, "change:lit": show, "change:told": show };
  for (const [event, listener] of Object.entries(heard)) model.on(event, listener);
  const root = made("div", "serried-view");
  root.append(headline);
  if (model.get("kinds").length) root.append(kindChoice(model));
  root.append(picture, told);
  el.append(root);
  draw();
  show();
  hideStill(el, model.get("still"));
  return () => {
    for (const [event, listener] of Object.entries(heard)) model.off(event, listener);
  };
}

export default { render };
