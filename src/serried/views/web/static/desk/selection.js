// What is pinned and what is pointed at, lit in every view and told in the panel.

import { say } from "../base/announcer.js";
import { counted, language } from "../base/i18n.js";
import { litBy } from "../base/lit.js";
import { Refusal, askDocument } from "../base/questions.js";
import { tipLines } from "../map/speech.js";
import { spokenSlice } from "../timeline/speech.js";
import { SideColumn } from "./side/column.js";
import { showFound, showGroup, showNothing, showRank, showSlice } from "./side/selected.js";
import { question } from "./state/fields.js";
import { pinWords, pinnedTarget } from "./state/pins.js";

/** @typedef {import("../base/lit.js").Target} Target */
/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {import("../timeline/trace/tracks.js").Tracks} Tracks */
/** @typedef {import("./side/selected.js").RankAnswer} RankAnswer */
/**
 * @typedef {object} Views  where it is shown
 * @property {import("../map/view.js").MapView} map
 * @property {import("../map/groups.js").GroupList} list
 * @property {import("../timeline/desk.js").TimelineDesk} timelines
 * @property {import("./side/collectives.js").Collectives} collectives
 * @property {{beside: import("./map/beside.js").Beside}} [tools]
 */

/** Holds what is pointed at; what is pinned stands in the state. */
export class Selection {
  /**
   * @param {import("./layout.js").LayoutDesk} layout
   * @param {import("./runs.js").Runs} runs
   * @param {() => Views} views
   */
  constructor(layout, runs, views) {
    this.layout = layout;
    this.runs = runs;
    this.views = views;
    /** @type {Target | null} */
    this.hovered = null;
    this.column = new SideColumn(layout.store);
  }

  get pinned() {
    return pinnedTarget(this.layout.store.state, this.layout.scene, this.runs.tracks);
  }

  get pinnedRank() {
    const target = this.pinned;
    return target?.type === "rank" || target?.type === "slice" ? target.rank : -1;
  }

  /** Returns what is lit now. */
  lit() {
    const { scene, isDrawn } = this.layout;
    return scene && isDrawn ? litBy(scene, this.hovered ?? this.pinned) : null;
  }

  /** Lights a target while the pointer is on it. @param {Target | null} target */
  hover(target) {
    this.hovered = target;
    this._light();
  }

  /** Lights and says the rank that the keyboard is on. @param {number} rank */
  focusRank(rank) {
    this.hover({ type: "rank", rank });
    const { scene } = this.layout;
    if (scene) say(spokenTarget({ type: "rank", rank }, scene, this.runs.tracks));
  }

  /** Pins a target, or nothing. @param {Target | null} target */
  pin(target) {
    this._pin(
      pinWords(target, this.layout.scene, this.runs.tracks),
      target === null || target.type === "group",
    );
    if (target?.type === "group") this.views().collectives.follow(this._groupOf(target));
  }

  /**
   * Pins the ranks that a search finds, and brings the first into view.
   * @param {string} find
   * @param {number} first
   */
  pinSearch(find, first) {
    this._pin({ ...pinWords(null, null, null), find });
    this.views().map.reveal(first);
  }

  /** Pins a rank and brings it into view everywhere. @param {number} rank */
  choose(rank) {
    const { map, timelines } = this.views();
    this.pin({ type: "rank", rank });
    map.reveal(rank);
    timelines.view.revealRank(rank);
  }

  /**
   * Pins a slice, or the rank of its row, or nothing.
   * @param {number} span
   * @param {number} rank
   */
  pinSpan(span, rank) {
    const { map, timelines } = this.views();
    if (span >= 0) this.pin({ type: "slice", slice: span, rank });
    else this.pin(rank < 0 ? null : { type: "rank", rank });
    timelines.view.reveal(span);
    timelines.view.revealRank(rank);
    map.reveal(rank);
  }

  /** Shows what is pinned in every view, and says it. */
  show() {
    const { scene } = this.layout;
    const { tracks } = this.runs;
    const { list, timelines } = this.views();
    const target = this.pinned;
    timelines.select(target?.type === "slice" ? target.slice : -1);
    list.mark(target?.type === "group" ? target : null);
    this._tell(target);
    if (target?.type === "slice") timelines.explain(target.slice);
    this._light();
    say(target && scene ? spokenTarget(target, scene, tracks) : "");
  }

  /** @param {Target | null} target */
  _tell(target) {
    const { layout } = this;
    const { tracks } = this.runs;
    const choose = (/** @type {number} */ rank) => this.choose(rank);
    if (target?.type === "slice" && tracks) showSlice(tracks, target.slice, choose);
    else if (target?.type === "group" && layout.scene) {
      const { collectives } = this.views();
      showGroup(layout.scene, target.kind, target.group);
      collectives.offer(layout.scene.kinds[target.kind].dim, this._groupOf(target));
    } else if (target?.type === "ranks") {
      showFound(layout.store.state.find, target.ranks, choose);
    } else if (target?.type === "rank") void layout.waiting.until(this._askRank(target.rank));
    else showNothing();
  }

  /**
   * Returns a group in view as the player names it: its kind, and its first rank.
   * @param {{kind: number, group: number}} target
   */
  _groupOf({ kind, group }) {
    const { scene } = this.layout;
    return scene ? `${scene.kinds[kind].kind}:${scene.members(kind, group)[0]}` : "";
  }

  /** Asks Python what a rank is, and shows the answer. @param {number} rank */
  async _askRank(rank) {
    const { layout } = this;
    const { scene } = layout;
    try {
      const asked = question(layout.store.state, language(), { rank: String(rank) });
      /** @type {RankAnswer} */
      const answer = await askDocument(`rank?${asked}`);
      const isPinned = this.pinned?.type === "rank" && this.pinnedRank === answer.rank;
      if (!scene || scene !== layout.scene || !isPinned) return;
      showRank(answer, scene, (each) => this.choose(each));
    } catch (error) {
      // The layout was asked for in the same words, so its refusal stands in place already.
      if (!(error instanceof Refusal)) throw error;
    }
  }

  /** Shows in map and timeline what is lit. */
  _light() {
    const { map, timelines, tools } = this.views();
    const lit = this.lit();
    map.light(lit, this.pinnedRank);
    tools?.beside.light(this.hovered ?? this.pinned, this.pinnedRank);
    timelines.view.light(lit, this.layout.scene?.kinds ?? [], this.pinnedRank);
  }

  /**
   * @param {ReturnType<typeof pinWords>} words
   * @param {boolean} [stays]  the list or the prose at the right stays in view
   */
  _pin(words, stays = false) {
    this.hovered = null;
    const { store } = this.layout;
    const side = stays && /^(groups|learn)$/.test(store.state.side) ? store.state.side : "";
    store.soon({ ...words, side });
    this.show();
    this.column.show();
  }
}

/**
 * Writes a target in one line.
 * @param {Target} target
 * @param {Scene | null} scene
 * @param {Tracks | null} tracks
 */
function spokenTarget(target, scene, tracks) {
  if (target.type === "slice" && tracks) return spokenSlice(target.slice, tracks);
  if (!scene) return "";
  if (target.type === "group") return scene.groupText(target.kind, target.group);
  if (target.type === "ranks") return counted("unit.ranks", target.ranks.length);
  return tipLines(scene, target.rank).join("; ");
}
