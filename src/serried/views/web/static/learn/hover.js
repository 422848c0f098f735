// The card beside a word: shown where it is hovered or focused, pinned by a click or Enter, closed
// by Escape.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { cardElements } from "./card.js";

/** @typedef {import("./card.js").Card} Card */

const OPEN_MS = 350;
const CLOSE_MS = 220;
const AWAY = 6;
const EDGE = 8;

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
    this.box.replaceChildren(...cardElements(card), more);
    this.box.setAttribute("aria-label", card.title);
    this.box.hidden = false;
    word.setAttribute("aria-describedby", "card");
    this._place(word);
  }

  /** @param {string} key */
  _more(key) {
    this.close();
    this.more(key);
  }

  /** @param {HTMLElement} word */
  _place(word) {
    const { bottom, left, top } = word.getBoundingClientRect();
    const { offsetHeight: height, offsetWidth: width } = this.box;
    const below = bottom + AWAY;
    const isBelow = below + height <= innerHeight - EDGE || top - AWAY - height < EDGE;
    const y = isBelow ? Math.min(below, innerHeight - EDGE - height) : top - AWAY - height;
    this.box.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - EDGE - width))}px`;
    this.box.style.top = `${Math.max(EDGE, y)}px`;
    this.box.scrollTop = 0;
  }
}

/** @param {EventTarget | null} target @returns {HTMLElement | null} */
function wordAt(target) {
  return target instanceof Element ? target.closest("[data-term]") : null;
}
