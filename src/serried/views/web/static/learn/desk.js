// The desk of Learn: the lessons and all cards to choose from, and the card that is open at the
// right, in whichever tab.

import { byId, make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { Refusal, askDocument } from "../base/questions.js";
import { Waiting } from "../base/waiting.js";
import { cardElements, found } from "./card.js";
import { HoverCard } from "./hover.js";
import { TermMarks } from "./marking.js";
import { pictureOf } from "./picture.js";

/** @typedef {import("./card.js").Card} Card */
/** @typedef {import("./card.js").Lesson} Lesson */
/** @typedef {import("./card.js").Named} Named */
/** @typedef {import("./state.js").LearnState & {view: string}} LearnWords */
/**
 * @typedef {object} LearnHost  the page around Learn
 * @property {import("../base/store.js").Part<LearnWords>} store
 * @property {(words: Record<string, string>) => string} question  about the job, rank and plan
 * @property {(search: string) => unknown} visit  shows the state that an address holds
 * @property {(card: string) => void} turn  shows a card at the right
 */

/** Cards that are kept, by what was asked. */
const KEPT = 60;

/** Holds the lessons together; its state is the page's. */
export class LearnDesk {
  /** @param {LearnHost} host */
  constructor(host) {
    this.host = host;
    /**
     * @type {{lessons: Lesson[], terms: Named[],
     *   pictures: Record<string, import("./picture.js").Picture>}}
     */
    this.told = { lessons: [], terms: [], pictures: {} };
    this.toldIn = "";
    /** @type {Map<string, Promise<Card>>} */
    this.cards = new Map();
    /** What the card at the right was asked for. */
    this.shown = "";
    this.waiting = new Waiting((error) => console.error(error));
    this.hover = new HoverCard((key) => this.ask(key), host.turn);
    this.marks = new TermMarks(document.body);
    byId("learn-find").addEventListener("input", () => this._list());
    document.addEventListener("spoken", () => void this.waiting.until(this._tell()));
  }

  get isBusy() {
    return this.waiting.isBusy;
  }

  /** The lesson whose state is in view, null for none. */
  get lesson() {
    const { card } = this.host.store.state;
    return this.told.lessons.find(({ key }) => key === card) ?? null;
  }

  /** Shows what the state asks for. */
  async take() {
    const { card, view } = this.host.store.state;
    document.body.dataset.lesson = view === "learn" ? card : "";
    byId("lesson").hidden = !card;
    byId("learn-fault").textContent = "";
    if (view === "learn" || card) await this.waiting.until(this._tell());
    if (card) await this.waiting.until(this._show(card));
  }

  /** Returns a card with the numbers of the job in view. @param {string} key */
  ask(key) {
    const asked = this.host.question({ term: key });
    const kept = this.cards.get(asked);
    if (kept) return kept;
    if (this.cards.size >= KEPT) this.cards.clear();
    /** @type {Promise<Card>} */
    const asking = askDocument(`term?${asked}`);
    this.cards.set(asked, asking);
    asking.catch(() => this.cards.delete(asked));
    return asking;
  }

  /** Asks for the lessons in the language in use, and shows them. */
  async _tell() {
    const { card, view } = this.host.store.state;
    if (view !== "learn" && !card) return;
    if (this.toldIn !== language()) {
      this.toldIn = language();
      this.told = await askDocument(`learn?lang=${language()}`);
    }
    this._grid();
    this._list();
    if (card) await this._show(card);
  }

  /** @param {string} key */
  async _show(key) {
    const asked = this.host.question({ term: key });
    this.shown = asked;
    try {
      const card = await this.ask(key);
      if (this.shown !== asked) return;
      byId("lesson-card").replaceChildren(...cardElements(card, this.lesson?.look));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this._refuse(error.message);
    }
    this._neighbours();
  }

  /**
   * Says why there is no card; where the right column is closed, above those that there are.
   * @param {string} why
   */
  _refuse(why) {
    byId("lesson-card").replaceChildren(make("p", { class: "fault" }, why));
    document.body.dataset.lesson = "";
    byId("learn-fault").textContent = why;
  }

  /** Offers the lessons before and behind the one in view. */
  _neighbours() {
    const { lessons } = this.told;
    const at = this.lesson ? lessons.indexOf(this.lesson) : -1;
    const steps = at < 0 ? [] : [lessons[at - 1], lessons[at + 1]];
    const buttons = steps.map((lesson, place) =>
      lesson
        ? this._button(lesson, `${place ? "" : "‹ "}${lesson.card.name}${place ? " ›" : ""}`)
        : make("span"),
    );
    byId("lesson-steps").replaceChildren(...buttons);
  }

  /** Shows the lessons as cards to choose from. */
  _grid() {
    const cards = this.told.lessons.map((lesson, at) => {
      const { card } = lesson;
      const title = make("b", {}, `${at + 1}  ${lesson.title}`);
      const open = () => this.host.visit(addressOf(lesson));
      return make(
        "li",
        {},
        make(
          "button",
          { type: "button", "data-plain": true, click: open },
          title,
          card.text,
          pictureOf(this.told.pictures[lesson.key]),
        ),
      );
    });
    byId("learn-cards").replaceChildren(...cards);
  }

  /** Shows the words that a search means: lessons open their state, others their card. */
  _list() {
    const field = /** @type {HTMLInputElement} */ (byId("learn-find"));
    const { lessons, terms } = this.told;
    const { card } = this.host.store.state;
    const items = found(terms, field.value).map((term) => {
      const lesson = lessons.find(({ key }) => key === term.key);
      const button = lesson ? this._button(lesson, term.title) : this._cardButton(term);
      if (term.key === card) button.setAttribute("aria-current", "true");
      return make("li", {}, button);
    });
    const none = make("li", { class: "note" }, t("learn.none"));
    byId("learn-list").replaceChildren(...(items.length ? items : [none]));
  }

  /** @param {Lesson} lesson @param {string} title */
  _button(lesson, title) {
    const click = () => this.host.visit(addressOf(lesson));
    return make("button", { type: "button", "data-plain": true, click }, title);
  }

  /** @param {Named} term */
  _cardButton({ key, title }) {
    const click = () => this.host.turn(key);
    return make("button", { type: "button", "data-plain": true, click }, title);
  }
}

/**
 * Returns the address of a lesson: its own state, in the tab that shows it, with its card.
 * @param {Lesson} lesson
 */
function addressOf({ address, key }) {
  const words = new URLSearchParams(address);
  if (!words.get("view")) words.set("view", "learn");
  words.set("card", key);
  words.set("side", "learn");
  return words.toString();
}
