// The keyboard: which view a key goes to, keys that are held down, and the table of all keys.

import { byId, make } from "../base/dom.js";
import { has, t } from "../base/i18n.js";

/** @typedef {(strength: number) => void} Move  strength 1 is one press of a key */
/**
 * @typedef {object} Moves
 * @property {(strength: number) => void} zoom
 * @property {(strength: number) => void} step
 * @property {() => void} fit
 */
/**
 * @typedef {object} View
 * @property {HTMLElement} canvas
 * @property {Moves | null} moves  null until it is there
 * @property {(event: KeyboardEvent) => boolean} key  true when it was taken
 */

const REPEAT_MS = 33;
const REPEAT_STRENGTH = 0.35;
const HOLD_MS = 220;

/** Every key, as the help lists them: the keys, and the sentence that says what they do. */
export const KEYS = [
  ["W S", "keys.zoom"],
  ["A D", "keys.pan"],
  ["0", "keys.fit"],
  ["wheel", "keys.wheel"],
  ["← ↑ ↓ →", "keys.arrows"],
  ["Enter", "keys.enter"],
  [", .", "keys.beside"],
  ["X", "keys.cube"],
  ["[ ]", "keys.stages"],
  ["F", "keys.centre"],
  ["drag", "keys.range"],
  ["C", "keys.path"],
  ["M", "keys.strips"],
  ["Space", "keys.play"],
  ["← → Home End", "keys.steps"],
  ["/", "keys.search"],
  ["N Shift+N", "keys.found"],
  ["B", "keys.left"],
  ["Q", "keys.right"],
  ["Esc", "keys.clear"],
  ["?", "keys.help"],
];

/**
 * Sends keys to the view that has the focus or is under the pointer, never while text is typed;
 * letters to the only view in sight where nothing has the focus, so that they work at once.
 * @param {View[]} views
 * @param {Record<"clear" | "left" | "right", () => void> &
 *   {search: (view: View | null) => unknown}} page  search: in the view that has the focus or the
 *   pointer; left and right: the columns
 */
export function listenToKeys(views, page) {
  const held = new Held();
  document.addEventListener("keyup", (event) => held.release(event.key.toLowerCase()));
  window.addEventListener("blur", () => held.release(null));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
      return;
    if (event.key === "Escape") return page.clear();
    const pointed = views.find(({ canvas }) => canvas.matches(":hover"));
    if (isTyping(event.target) && !(pointed && isForView(event.target, event.key))) return;
    const focused = views.find(({ canvas }) => canvas === document.activeElement);
    const view = focused ?? pointed ?? onlyView(views, event.key);
    if (event.key === "/" || event.key === "?") {
      event.preventDefault();
      if (event.key === "/") page.search(view);
      else openHelp();
      return;
    }
    const column = { b: page.left, q: page.right }[event.key.toLowerCase()];
    if (column) return column();
    if (!view?.moves) return;
    if (event.repeat && "wasd".includes(event.key.toLowerCase())) return;
    const move = moveOf(event.key.toLowerCase(), view.moves);
    if (move) held.press(event.key.toLowerCase(), move);
    else if (event.key === "0") view.moves.fit();
    else if (!view.key(event)) return;
    event.preventDefault();
  });
}

/**
 * Returns the view that a letter means where nothing has the focus: the only one in sight.
 * @param {View[]} views
 * @param {string} key
 */
function onlyView(views, key) {
  if (document.activeElement !== document.body || !/^[a-z0]$/i.test(key)) return null;
  const [first, ...others] = views.filter(({ canvas }) => canvas.checkVisibility());
  return others.length ? null : (first ?? null);
}

/** Opens the table of keys. */
export function openHelp() {
  const rows = KEYS.map(([keys, text]) =>
    make("tr", {}, make("th", { scope: "row" }, ...caps(keys)), make("td", {}, t(text))),
  );
  byId("keys-table").replaceChildren(make("table", {}, make("tbody", {}, ...rows)));
  dialog().showModal();
}

/** @returns {HTMLDialogElement} */
function dialog() {
  return /** @type {HTMLDialogElement} */ (byId("keys"));
}

/** @param {string} keys */
function caps(keys) {
  return keys
    .split(" ")
    .map((key) =>
      make("kbd", {}, key.length > 3 && has(`keys.${key}_name`) ? t(`keys.${key}_name`) : key),
    );
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    Boolean(target.closest("input:not([type=checkbox]), textarea, select"))
  );
}

/**
 * Tells whether a letter means nothing to a field, so that a view under the pointer may have it.
 * @param {EventTarget | null} target
 * @param {string} key
 */
function isForView(target, key) {
  return (
    target instanceof Element &&
    target.matches("select, [inputmode=numeric]") &&
    /^[wasd]$/i.test(key)
  );
}

/** @param {string} key @param {Moves} moves @returns {Move | null} */
function moveOf(key, moves) {
  if (key === "w") return (strength) => moves.zoom(strength);
  if (key === "s") return (strength) => moves.zoom(-strength);
  if (key === "a") return (strength) => moves.step(-strength);
  if (key === "d") return (strength) => moves.step(strength);
  return null;
}

/** Repeats moves while their keys are held: once at once, then steadily. */
class Held {
  constructor() {
    /** @type {Map<string, number>} */
    this.timers = new Map();
  }

  /** @param {string} key @param {Move} move */
  press(key, move) {
    this.release(key);
    move(1);
    const steadily = () =>
      this.timers.set(
        key,
        setInterval(() => move(REPEAT_STRENGTH), REPEAT_MS),
      );
    this.timers.set(key, setTimeout(steadily, HOLD_MS));
  }

  /** Stops a key's move, or all of them. @param {string | null} key */
  release(key) {
    for (const [each, timer] of this.timers) {
      if (key !== null && each !== key) continue;
      clearTimeout(timer);
      clearInterval(timer);
      this.timers.delete(each);
    }
  }
}
