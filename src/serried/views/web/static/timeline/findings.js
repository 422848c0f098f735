// The panel of findings above the timeline: the verdict on the run, and a card for each thing that
// costs it time. A card shows where: on the map, on the timeline, and in the address.

import { byId, make } from "../base/dom.js";
import { counted, language, t } from "../base/i18n.js";
import { percentText } from "../base/quantity.js";
import { askDocument } from "../base/questions.js";

/** @typedef {Record<string, string[]>} Lines  by language */
/**
 * @typedef {object} Shows  where a finding is seen
 * @property {number} [rank]
 * @property {number} [slice]
 * @property {number} [from_ns]
 * @property {number} [to_ns]
 * @property {string} [heat]
 */
/**
 * @typedef {object} Card
 * @property {"slow" | "gap" | "bubble"} kind
 * @property {Lines | null} head  what all that is like it takes, in a few words
 * @property {Lines} lines  what it is, the first in one sentence
 * @property {Lines} more   what it came from, or what to do
 * @property {number | null} share  of a step
 * @property {number[]} ranks
 * @property {Shows | null} shows
 */
/** @typedef {{verdict: Lines | null, cards: Card[]}} Findings  serried.trace-findings/1 */

/** Shows what Python found in the trace in view. */
export class FindingsPanel {
  /**
   * @param {import("./state.js").Host} host
   * @param {(shows: Shows) => void} go  shows where a finding is
   */
  constructor(host, go) {
    this.host = host;
    this.go = go;
    /** @type {Findings | null} */
    this.found = null;
    this.chosen = -1;
    this.isOpen = true;
    this.asked = 0;
    this.place = make("section", { id: "findings", hidden: true });
    this.toggle = make("button", {
      type: "button",
      id: "findings-toggle",
      "aria-controls": "findings",
      hidden: true,
    });
    this.toggle.addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this._open();
    });
    byId("bubble").after(this.toggle);
    this.way = make("p", { id: "findings-way", hidden: true });
    byId("timeline-frame").before(this.place);
    document.addEventListener("spoken", () => this._show());
  }

  get isBusy() {
    return this.asked > 0;
  }

  /**
   * Asks what is wrong with the trace in view; of one that has grown what was found stays.
   * @param {boolean} [hasGrown]
   */
  async take(hasGrown = false) {
    const { host } = this;
    const { trace, tracks } = host;
    if (!hasGrown) {
      Object.assign(this, { found: null, chosen: -1 });
      this._show();
    }
    this.asked++;
    try {
      const found = await askDocument(`trace/findings?trace=${trace}`);
      if (tracks !== host.tracks) return;
      this.found = found;
      this._show();
    } catch (error) {
      host.fail(error);
    } finally {
      this.asked--;
    }
  }

  _show() {
    const { found, place } = this;
    if (!found?.verdict) return this._open();
    place.setAttribute("aria-label", t("findings.title"));
    const [first, ...rest] = found.verdict[language()] ?? [];
    const cards = make("ol", { id: "findings-cards" });
    cards.append(...found.cards.map((card, at) => this._card(card, at)));
    const lines = rest.map((line) => make("span", {}, line));
    const verdict = make("p", { class: "verdict" }, make("strong", {}, first ?? ""), ...lines);
    place.replaceChildren(verdict, cards, this.way);
    return this._open();
  }

  _open() {
    const { found, isOpen, place, toggle } = this;
    const count = found?.verdict ? found.cards.length : 0;
    toggle.hidden = !found?.verdict;
    toggle.textContent = counted("findings.count", count);
    toggle.setAttribute("aria-expanded", String(isOpen));
    place.hidden = !found?.verdict || !isOpen;
    this._tell();
  }

  /** @param {Card} card @param {number} at */
  _card(card, at) {
    const [first] = card.lines[language()] ?? [];
    const [head] = card.head?.[language()] ?? [];
    // The bubble's sentence says its share itself.
    const share =
      card.share === null || card.kind === "bubble" ? "" : ` ${percentText(card.share)}`;
    const button = make(
      "button",
      { type: "button", class: "card", title: first ?? "", "aria-pressed": "false" },
      make("b", {}, head ?? `${t(`findings.${card.kind}`)}${share}`),
      ` ${first ?? ""}`,
    );
    button.addEventListener("click", () => this._choose(at));
    const item = make("li", { "data-kind": card.kind }, button);
    item.style.setProperty("--letters", String(emOf(button.textContent ?? "")));
    return item;
  }

  /** Says of the chosen card what it came from, and what to do. */
  _tell() {
    const card = this.found?.cards[this.chosen];
    for (const [place, each] of this.place.querySelectorAll(".card").entries())
      each.setAttribute("aria-pressed", String(place === this.chosen));
    const [first, ...rest] = card?.lines[language()] ?? [];
    const way = [...rest, ...(card?.more[language()] ?? [])];
    // Why a span began late is said in its own panel at the right.
    this.way.hidden = !card || card.kind === "gap";
    this.way.replaceChildren(
      make("strong", {}, first ?? ""),
      ...way.map((line) => make("span", {}, line)),
    );
  }

  /** @param {number} at */
  _choose(at) {
    this.chosen = at;
    this._tell();
    const shows = this.found?.cards[at]?.shows;
    if (shows) this.go(shows);
  }
}

/** Returns about how wide a text is, in em. @param {string} text */
function emOf(text) {
  return [...text].reduce((sum, letter) => sum + (letter > "\u2e7f" ? 1 : 0.55), 0);
}
