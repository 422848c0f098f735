// The desk of the Schedule view: its parts, what is chosen, and what is drawn.

import { announce, say } from "../base/announcer.js";
import { byId, copyText } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { Refusal } from "../base/questions.js";
import { hideTip, showTip } from "../base/tip.js";
import { Waiting } from "../base/waiting.js";
import { Answers } from "./answers.js";
import { listenToPanels, placeHeads, showAll, showParameters, showSpot } from "./panels.js";
import { ScheduleSeek } from "./seek.js";
import { printWhole } from "./sheets.js";
import { isShown, namesOf, toggledShow } from "./state.js";
import { ScheduleView, spotOf } from "./view.js";
import { blockTitle, commandText, namesFor, spotLines } from "./words.js";

/** @typedef {import("./state.js").AskedState} AskedState */
/** @typedef {import("./state.js").ScheduleState} ScheduleState */
/** @typedef {import("./paint/picture.js").Spot} Spot */

const TYPING_MS = 220;

/** Holds the view together; the state is the page's. */
export class ScheduleDesk {
  /** @param {import("../base/store.js").Part<AskedState>} store */
  constructor(store) {
    this.store = store;
    this.waiting = new Waiting((error) => {
      console.error(error);
      byId("schedule-alert").textContent = t("error.server");
    });
    /** @type {number | null} */
    this.typing = null;
    this.answers = new Answers();
    this.view = new ScheduleView(
      {
        frame: byId("schedule-frame"),
        scroller: byId("schedule-scroller"),
        canvas: byId("schedule"),
        axis: byId("schedule-axis"),
      },
      {
        hover: (spot) => this._hover(spot),
        choose: (spot) => this.choose(spot),
        moved: () => store.soon({ window: String(this.view) }),
        laid: placeHeads,
      },
      namesFor(() => this.blocks),
    );
    printWhole(this.view);
    this.seek = new ScheduleSeek(this.view, (spot) => this.choose(spot));
    this._listen();
  }

  get state() {
    return this.store.state;
  }

  get isOpen() {
    return this.state.view === "schedule";
  }

  get isBusy() {
    return this.waiting.isBusy || this.typing !== null || this.view.redraw.waiting;
  }

  /** The schedules in view, from the top; null for one that was never answered. */
  get blocks() {
    return namesOf(this.state).map((name) => this.answers.of(name));
  }

  /**
   * Changes the state; `field` is the one typed into, so that one word typed is one step back.
   * @param {Partial<ScheduleState>} change
   * @param {string} [field]
   */
  edit(change, field = "") {
    this.store.step(change, field);
    this._showParameters();
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(
      () => {
        this.typing = null;
        void this._while(this._ask());
      },
      field ? TYPING_MS : 0,
    );
  }

  /** Shows what the state asks for, where the tab is open. */
  async take() {
    if (this.isOpen) await this._while(this._ask());
  }

  /** Chooses what is at a spot, or nothing. @param {Spot | null} spot */
  choose(spot) {
    const data = spot && this.view.blocks[spot.block];
    const isThing = spot && data && (spot.entry >= 0 || spot.idle >= 0);
    this.view.choose(isThing ? spot : null);
    const isAction = isThing && spot.entry >= 0;
    const action = isAction ? `${spot.block}:${data.actionName(spot.entry)}` : "";
    this.store.soon(isThing ? { action, side: "" } : { action });
    showSpot(this.view.chosen, data);
    const lines = isThing ? spotLines({ ...spot, isStrip: false }, data) : [];
    say(isThing ? [blockTitle(data.header.name, data), ...lines].join("; ") : "");
  }

  /** Clears what is chosen and pointed at. */
  clear() {
    hideTip();
    this.seek.clear();
    this.choose(null);
  }

  /**
   * Moves to another action, or changes what is drawn; true when the key means something.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const along = { ",": -1, ".": 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const letter = event.key.toLowerCase();
    if (along || across) {
      this.choose(along ? this.view.beside(along) : this.view.across(across ?? 0));
      this.view.reveal();
    } else if (letter === "f") this.view.centre();
    else if (letter === "n") this.seek.step(event.shiftKey ? -1 : 1);
    else if (letter === "c") this._toggle("path");
    else if (letter === "m") this._toggle("strips");
    else return false;
    return true;
  }

  _listen() {
    listenToPanels({
      state: () => this.state,
      edit: (change, field) => this.edit(change, field),
      addRun: (name) => void this._while(this._addRun(name)),
      left: () => this.store.leaveField(),
    });
    byId("schedule-fit").addEventListener("click", () => this.view.fit());
    for (const what of ["strips", "path"]) {
      byId(`schedule-${what}`).addEventListener("click", () => this._toggle(what));
    }
    const copy = byId("copy-schedule-command");
    copy.addEventListener("click", () => {
      announce(t(copyText(commandText(this.blocks)) ? "copy.done" : "copy.failed"), copy);
    });
  }

  /** @param {string} what */
  _toggle(what) {
    this.store.step({ show: toggledShow(this.state, what) });
    this._showTools();
  }

  /** @param {Spot | null} spot */
  _hover(spot) {
    const data = spot && this.view.blocks[spot.block];
    const lines = spot && data ? spotLines(spot, data) : [];
    if (!lines.length) return hideTip();
    const { x, y } = this.view.pointerOnPage();
    showTip(lines, x, y);
  }

  /** Shows that an answer is awaited until it is there. @param {Promise<void>} answer */
  async _while(answer) {
    byId("schedule-frame").setAttribute("aria-busy", "true");
    await this.waiting.until(answer);
    if (!this.waiting.isBusy) byId("schedule-frame").removeAttribute("aria-busy");
  }

  async _ask() {
    // Until the page speaks, nothing can be said; it then asks again.
    if (!document.documentElement.dataset.spoken) return;
    if (!(await this.answers.ask(this.state))) return;
    byId("schedule-alert").textContent = "";
    this._show();
  }

  /** Puts a step of a run on top. @param {string} name */
  async _addRun(name) {
    try {
      const change = await this.answers.withRun(this.state, name);
      if (change) this.edit(change);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this._showParameters();
      announce(error.message, byId("schedule-add"));
    }
  }

  _show() {
    const { answers, blocks } = this;
    const names = namesOf(this.state);
    this._showParameters();
    showAll(answers, names, blocks);
    this.view.show(blocks);
    this.view.take(this.state.window);
    this._showTools();
    this.seek.show();
    const titles = names.map((name, place) => blockTitle(name, blocks[place]));
    if (this.isOpen) document.title = `${titles.join(", ")} · serried`;
    const spot = this._spotOfState();
    this.view.choose(spot);
    showSpot(spot, spot && blocks[spot.block]);
    const faults = [...answers.faults.values()].map(({ sentence }) => sentence);
    if (faults.length) say(faults.join(" "));
  }

  _showParameters() {
    showParameters(this.answers, this.state, (name) => this.edit({ name, action: "" }));
  }

  _showTools() {
    for (const what of ["strips", "path"]) {
      byId(`schedule-${what}`).setAttribute("aria-pressed", String(isShown(this.state, what)));
    }
    this.view.draw(isShown(this.state, "strips"), isShown(this.state, "path"));
  }

  /** Returns the spot of the action that the state names; null where it is not in view. */
  _spotOfState() {
    const [place, ...rest] = this.state.action.split(":");
    const data = /^\d+$/.test(place) ? this.blocks[Number(place)] : null;
    const entry = data ? data.entryOf(rest.join(":")) : -1;
    if (!data || entry < 0) return null;
    return spotOf(Number(place), data.rankOf(entry), entry, data.drawn.start[entry]);
  }
}
