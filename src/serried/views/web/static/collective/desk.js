// The desk of the collective player: the state, the answers, and a clock that moves the pictures.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId } from "../base/dom.js";
import { counted, t } from "../base/i18n.js";
import { onThemeChange } from "../base/theme.js";
import { Waiting } from "../base/waiting.js";
import { CollectiveAnswers } from "./answers.js";
import { TimeAxis } from "./axis.js";
import { listenToBar, showBar, showMoment, showSpeeds } from "./bar.js";
import { Stage } from "./stage.js";
import { groupOf, stepOf, stepText } from "./state.js";
import { hasRoom, paintTrails } from "./trails.js";
import { showExplained, showPlanned, stepLine } from "./words.js";

/** @typedef {import("./state.js").CollectiveState} CollectiveState */
/**
 * @typedef {object} CollectiveHost  the page around the player
 * @property {import("../base/store.js").Part<CollectiveState>} store
 * @property {(words: Record<string, string>) => string} question  about the job in view
 * @property {() => Record<string, string>} planned  what asks for the job's plan as well
 * @property {(kind: string) => string} label     what a kind is called: DP
 * @property {(rank: number) => import("./trails.js").Spot | null} spot  of a rank on the map
 * @property {() => import("./state.js").Offers} offers
 * @property {() => void} closed
 */

const TYPING_MS = 220;
const INSET = 8;
const LONGEST_FRAME_S = 0.1;

/** Holds the player together; its state is the page's. */
export class CollectiveDesk {
  /** @param {CollectiveHost} host */
  constructor(host) {
    this.host = host;
    this.answers = new CollectiveAnswers();
    this.stage = new Stage((place, step) => this._choose(place, step));
    this.axis = new TimeAxis(byId("collective-axis"), byId("collective-axis-frame"), INSET);
    this.trails = new Surface(byId("map-moves"), byId("map-frame"));
    this.redraw = new Redraw(() => this._draw());
    this.waiting = new Waiting((error) => {
      console.error(error);
      byId("collective-alert").textContent = t("error.server");
    });
    /** @type {number | null} */
    this.typing = null;
    this.before = 0;
    this._listen();
  }

  get state() {
    return this.host.store.state;
  }

  get playback() {
    return this.stage.playback;
  }

  get isOpen() {
    return Boolean(this.state.collective && groupOf(this.state.collective_of));
  }

  get isBusy() {
    return this.waiting.isBusy || this.typing !== null || (this.redraw.waiting && !this.isRunning);
  }

  get isRunning() {
    return this.playback.isPlaying;
  }

  /** Whether steps stand beside one another as frames: as chosen, else as the system asks. */
  get isFrames() {
    return this.state.frames ? this.state.frames === "1" : this.stage.isStill;
  }

  /** Closes the player. */
  close() {
    this.playback.seek(0);
    const none = { collective: "", collective_of: "", algorithm: "", split: "", mask: "" };
    this.host.store.step({ ...none, step: "" });
    void this.take();
    this.host.closed();
  }

  /** Shows what the state asks for. */
  async take() {
    const { isOpen } = this;
    byId("collective-section").hidden = !isOpen;
    this.redraw.request();
    if (isOpen && document.documentElement.dataset.spoken) await this.waiting.until(this._ask());
  }

  _listen() {
    const { playback } = this;
    listenToBar({
      state: () => this.state,
      edit: (change, field) => this._edit(change, field),
      toggle: () => this._toggle(),
      step: (way) => this._move(() => playback.step(way)),
      seek: (share) => this._move(() => playback.seek(share * playback.total)),
      speed: (speed) => (playback.speed = speed),
      frames: () => this._edit({ frames: this.isFrames ? "0" : "1" }),
      close: () => this.close(),
      left: () => this.host.store.leaveField(),
    });
    showSpeeds(playback.speed);
    new ResizeObserver(() => this.redraw.request()).observe(byId("collective-pictures"));
    onThemeChange(() => this.redraw.request());
  }

  /** @param {Partial<CollectiveState>} change @param {string} [field] */
  _edit(change, field = "") {
    this.host.store.step(change, field);
    if (this.typing !== null) clearTimeout(this.typing);
    this.typing = setTimeout(
      () => {
        this.typing = null;
        void this.take();
      },
      field ? TYPING_MS : 0,
    );
  }

  async _ask() {
    const group = groupOf(this.state.collective_of);
    const { answers, host, stage } = this;
    const asking = (/** @type {Record<string, string>} */ words) =>
      host.question(this.state.priced ? { ...words, ...host.planned(), priced: "plan" } : words);
    if (!group || !(await answers.ask(this.state, asking, group, host.offers()))) return;
    byId("collective-alert").textContent = answers.fault;
    stage.take(answers.executions);
    const [first] = answers.executions;
    const steps = stepOf(this.state.step);
    if (first && !this.isRunning) this.playback.seek(steps ? first.timeAt(steps) : 0);
    this._tellGroup();
    const shown = answers.fault ? [] : answers.executions;
    showBar(this.state, shown, this.isFrames, host.offers());
    this.redraw.request();
  }

  _tellGroup() {
    const group = groupOf(this.state.collective_of);
    const [first] = this.answers.executions;
    if (!group || !first) return;
    const { num_ranks: ranks, num_nodes: nodes, about, command, source } = first.header;
    byId("collective-group").textContent = t("collective.group", {
      kind: this.host.label(group.kind),
      rank: group.rank,
      ranks: counted("unit.ranks", ranks),
      nodes: counted("unit.nodes", nodes),
    });
    byId("collective-about").textContent = about;
    byId("collective-command").textContent = command;
    byId("collective-source").textContent = source;
    showPlanned(first, (collective) => this._edit({ collective, algorithm: "", step: "" }));
    showExplained(first);
  }

  _toggle() {
    this.playback.toggle();
    this.before = 0;
    this._moved();
  }

  /** @param {() => void} move */
  _move(move) {
    move();
    this._moved();
  }

  /** @param {number} place @param {number} step */
  _choose(place, step) {
    const execution = this.answers.executions[place];
    this._move(() => this.playback.seek(execution.timeAt(step)));
  }

  _moved() {
    const [first] = this.answers.executions;
    if (first && !this.isRunning)
      this.host.store.soon({ step: stepText(first.stepAt(this.playback.time)) });
    this.redraw.request();
  }

  /** Draws the moment, and asks for the next while it runs. */
  _draw() {
    const { answers, axis, isOpen, playback, stage } = this;
    const { executions } = answers;
    const now = performance.now();
    if (this.isRunning && isOpen) {
      const passed = this.before ? (now - this.before) / 1000 : 0;
      playback.pass(Math.min(LONGEST_FRAME_S, passed));
      this.before = now;
      if (this.isRunning) this.redraw.request();
      else this._moved();
    }
    this._drawTrails();
    if (!isOpen || !executions.length) return;
    stage.show(this.isFrames, answers.asked);
    axis.show(executions, playback.time, playback.total);
    const [first] = executions;
    showMoment({
      share: playback.total ? playback.time / playback.total : 0,
      isPlaying: playback.isPlaying,
      isEmpty: !playback.total,
      text: stepLine(first, first.stepAt(playback.time)),
    });
  }

  /** Draws the moment on the map as well, where its ranks have room for it. */
  _drawTrails() {
    const [first] = this.answers.executions;
    this.trails.resize();
    if (!this.isOpen || !first || !hasRoom(first, this.host.spot)) return this.trails.wipe();
    paintTrails(this.trails.begin(), first, this.stage.stepsOf(first), this.host.spot);
  }
}
