// The card beside a word: shown where it is hovered or focused, pinned by a click or Enter, closed
// by Escape.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { cardElements } from "./card.js";

/** @typedef {import("./card.js").Card} Card */
/** @typedef {{height: number, width: number}} Size */

const OPEN_MS = 350;
const CLOSE_MS = 220;
const AWAY = 6;
const EDGE = 8;
const MOST_COLUMNS = 3;
const LEAST_COLUMN = 320;

/** Shows the card of whatever word the pointer or the focus is on. */
export class HoverCard {
  /**
   * @param {(key: string) => Promise<Card>} ask
   * @param {(key: string) => void} more  opens the card at the right
   */
  constructor(ask, more) {
    this.ask = ask;
    this.more = more;
    this.box = byId("card");
    /** The word that the card is of. @type {HTMLElement | null} */
    this.of = null;
    /** A control that was pressed: whoever uses it does not ask what it means. */
    this.pressed = /** @type {HTMLElement | null} */ (null);
    /** @type {number | null} */
    this.timer = null;
    document.addEventListener("pointerover", (event) => this._over(event));
    document.addEventListener("focusin", (event) => this._focus(event));
    document.addEventListener("keydown", (event) => this._key(event), true);
    document.addEventListener("pointerdown", (event) => this._press(event));
  }

  get isOpen() {
    return !this.box.hidden;
  }

  /** Closes the card. */
  close() {
    this._wait(null, 0);
    const isInside = this.box.contains(document.activeElement);
    if (isInside) this.of?.focus();
    this.of?.removeAttribute("aria-describedby");
    this.of = null;
    this.box.hidden = true;
  }

  /** @param {(() => void) | null} then @param {number} ms */
  _wait(then, ms) {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = then && setTimeout(then, ms);
  }

  /** @param {PointerEvent} event */
  _over(event) {
    if (event.pointerType === "touch") return;
    const word = wordAt(event.target);
    if (word !== this.pressed) this.pressed = null;
    if (this.pressed) return;
    if (word && word !== this.of) this._wait(() => void this._open(word), OPEN_MS);
    else if (word || this.box.contains(/** @type {Node} */ (event.target))) this._wait(null, 0);
    else if (this.isOpen && !this.box.contains(document.activeElement))
      this._wait(() => this.close(), CLOSE_MS);
    else if (!this.isOpen) this._wait(null, 0);
  }

  /** @param {FocusEvent} event */
  _focus(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (this.box.contains(target)) return;
    if (target.matches(".term:focus-visible")) void this._open(target);
    else if (this.isOpen && target !== this.of) this.close();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key === "Escape" && this.isOpen) {
      event.stopPropagation();
      event.preventDefault();
      return this.close();
    }
    const word = wordAt(event.target);
    if (event.key !== "Enter" || !word?.matches(".term")) return;
    event.preventDefault();
    void this._open(word).then(() => this.box.focus());
  }

  /** @param {PointerEvent} event */
  _press(event) {
    const target = /** @type {Node} */ (event.target);
    if (this.box.contains(target)) return;
    const word = wordAt(target);
    if (word?.matches(".term")) void this._open(word);
    else {
      this.pressed = word;
      this.close();
    }
  }

  /** @param {HTMLElement} word */
  async _open(word) {
    this._wait(null, 0);
    this.of?.removeAttribute("aria-describedby");
    this.of = word;
    const key = word.dataset.term ?? "";
    const card = await this.ask(key).catch(() => null);
    if (this.of !== word || !card) return;
    const more = make("button", { type: "button", click: () => this._more(key) }, t("card.more"));
    this.box.replaceChildren(make("div", {}, ...cardElements(card)), more);
    this.box.setAttribute("aria-label", card.title);
    this.box.hidden = false;
    word.setAttribute("aria-describedby", "card");
    this._widen();
    this._place(word);
  }

  /** @param {string} key */
  _more(key) {
    this.close();
    this.more(key);
  }

  /** Gives the card as many columns as it needs to be seen whole, while there is room for them. */
  _widen() {
    const { box } = this;
    for (let columns = 1; columns <= MOST_COLUMNS; columns++) {
      if (columns > 1 && columns * LEAST_COLUMN > innerWidth) return;
      box.dataset.columns = String(columns);
      if (box.scrollHeight <= box.clientHeight) return;
    }
  }

  /** @param {HTMLElement} word */
  _place(word) {
    const { offsetHeight: height, offsetWidth: width } = this.box;
    const size = { height, width };
    const { left, top } = placeBeside(word.getBoundingClientRect(), size, {
      height: innerHeight,
      width: innerWidth,
    });
    this.box.style.left = `${left}px`;
    this.box.style.top = `${top}px`;
    this.box.scrollTop = 0;
  }
}

/**
 * Returns where a card stands: below its word or above, else beside it, so that it never covers
 * the word while there is room on any side.
 * @param {{left: number, top: number, right: number, bottom: number}} word
 * @param {Size} card
 * @param {Size} page
 */
export function placeBeside(word, card, page) {
  const [most, lowest] = [page.width - EDGE - card.width, page.height - EDGE - card.height];
  const within = (/** @type {number} */ at, /** @type {number} */ last) =>
    Math.max(EDGE, Math.min(at, last));
  const [below, above] = [word.bottom + AWAY, word.top - AWAY - card.height];
  const [after, before] = [word.right + AWAY, word.left - AWAY - card.width];
  if (below <= lowest) return { left: within(word.left, most), top: below };
  if (above >= EDGE) return { left: within(word.left, most), top: above };
  const top = within(below, lowest);
  if (after <= most) return { left: after, top };
  return { left: before >= EDGE ? before : within(word.left, most), top };
}

/** @param {EventTarget | null} target @returns {HTMLElement | null} */
function wordAt(target) {
  return target instanceof Element ? target.closest("[data-term]") : null;
}
