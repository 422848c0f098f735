// The layout in view: asked for when the job changes, kept while the next one is refused, and shown
// in the form and in words.

import { byId, make } from "../base/dom.js";
import { chosenLanguage, language, speak, t } from "../base/i18n.js";
import { Refusal, askDocument, askPayload } from "../base/questions.js";
import { Scene } from "../base/scene.js";
import { onThemeChange } from "../base/theme.js";
import { Fitting } from "./fitting.js";
import { blame, fillForm, showForm, typeName } from "./side/form.js";
import { headline, showBasics, showExplanation, showLegend } from "./side/prose.js";
import { showNothing } from "./side/selected.js";
import { question } from "./state/fields.js";
import { SIZES } from "./state/sizes.js";

/** @typedef {import("./state/fields.js").State} State */
/**
 * @typedef {object} LayoutEvents
 * @property {() => void} edited              the form holds another job, or another part of it
 * @property {() => Promise<void>} spoken     the page has turned to another language
 * @property {(scene: Scene) => void} shown   the words of a layout are on the page
 */

const TYPING_MS = 180;
/** Fields that change where ranks stand on the map, and so end a view of it. */
const SHAPES = [
  ...SIZES.filter(({ part }) => part === "ranks").map(({ name }) => name),
  "arrange",
  "cube",
];

/** Holds the newest layout that was not refused. */
export class LayoutDesk {
  /**
   * @param {import("../base/store.js").Store<State>} store
   * @param {import("../base/waiting.js").Waiting} waiting
   * @param {LayoutEvents} events
   */
  constructor(store, waiting, events) {
    this.store = store;
    this.waiting = waiting;
    this.events = events;
    /** @type {import("../base/scene.js").PageWords | null} */
    this.words = null;
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {number | null} */
    this.typing = null;
    this.asking = new AbortController();
    this.fitting = new Fitting(this);
    onThemeChange(() => {
      this._showWords();
      if (this.scene) this._show(this.scene);
    });
  }

  get isBusy() {
    return this.typing !== null;
  }

  /** Whether there are groups to draw. */
  get isDrawn() {
    return Boolean(this.scene?.kinds.length);
  }

  /**
   * Changes the job, or what is shown of it, and asks for its layout.
   * @param {Partial<State>} change
   * @param {string} [field]  the one typed into, so that one word typed is one step back
   */
  edit(change, field = "") {
    this.fitting.edited(change);
    const isMoved = SHAPES.some((each) => each in change);
    this.store.step(isMoved ? { map: "", ...change } : change, field);
    showForm(this.store.state, null);
    this.events.edited();
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(
      () => {
        this.typing = null;
        void this.waiting.until(this.ask());
      },
      field ? TYPING_MS : 0,
    );
  }

  /** Shows the state that the browser has gone back or forward to. */
  recall() {
    this.fitting.recalled();
    showForm(this.store.state, null);
    return this.ask();
  }

  /** Shows the state that was made to fit its framework. */
  recallFitted() {
    showForm(this.store.state, null);
    return this.ask();
  }

  /** Asks for the layout of the state, and shows it or what was wrong. */
  async ask() {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const { store } = this;
    try {
      if (this._language() !== language()) await this.speak();
      const asked = `layout?${question(store.state, language())}`;
      this.scene = new Scene(await askPayload(asked, signal));
      this.complain("");
      this.fitting.settled();
      this._show(this.scene);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      if (await this.fitting.fit()) await this.recallFitted();
      else if (!signal.aborted) this.complain(error.message, error.field);
    }
  }

  /** Turns the page to the language that the state asks for. */
  async speak() {
    await speak(this._language());
    this.words = await askDocument(`page?lang=${language()}`);
    this._showWords();
    await this.events.spoken();
  }

  /**
   * Shows what was wrong with a question, and what still stands; "" for nothing.
   * @param {string} sentence
   * @param {string} [field]
   */
  complain(sentence, field = "") {
    const { scene } = this;
    const kept = this.isDrawn && scene ? t("error.kept", { job: headline(scene) }) : "";
    const parts = [make("b", {}, sentence), ...(kept ? [make("span", {}, kept)] : [])];
    byId("alert").replaceChildren(...(sentence ? parts : []));
    byId("map-frame").classList.toggle("stale", Boolean(sentence));
    if (sentence) showForm(this.store.state, null);
    blame(field);
  }

  /** Says what the server refused, or that it does not answer. @param {unknown} error */
  fail(error) {
    if (!(error instanceof Refusal)) console.error(error);
    this.complain(error instanceof Refusal ? error.message : t("error.server"));
  }

  _language() {
    return chosenLanguage(this.store.state.lang, navigator.languages);
  }

  /** Shows what stands on the page whatever the layout. */
  _showWords() {
    const { scene, words } = this;
    const { state } = this.store;
    if (!words) return;
    fillForm(words);
    byId("hint").hidden = Boolean(state.dims || state.kind);
    byId("hint").replaceChildren(
      make("strong", {}, t("hint.title")),
      make("span", {}, t("hint.text")),
      make("span", {}, t("hint.drop")),
    );
    showBasics(words, scene);
    if (scene) return;
    showNothing();
    showExplanation(null);
  }

  /** Shows a layout in words. @param {Scene} scene */
  _show(scene) {
    const { state } = this.store;
    showForm(state, scene);
    byId("headline").textContent = headline(scene);
    if (state.view !== "schedule") {
      document.title = `${typeName(state.dims)} ${scene.worldSize} · serried`.trim();
    }
    byId("command").textContent = scene.command;
    byId("hint").hidden = this.isDrawn;
    /** @type {HTMLSelectElement} */ (byId("arrange")).value = state.arrange;
    if (this.words) showBasics(this.words, scene);
    showExplanation(scene.explanation);
    showLegend(scene);
    this.events.shown(scene);
  }
}
