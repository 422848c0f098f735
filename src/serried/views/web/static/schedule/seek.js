// The search of the Schedule view: "3F2", "mb 5", "rank 2 W" goes from one action to the next,
// block by block.

import { byId } from "../base/dom.js";
import { number, t } from "../base/i18n.js";
import { isRowWanted, readSeek } from "../base/seek.js";
import { spotOf } from "./view.js";

/** @typedef {import("./view.js").ScheduleView} ScheduleView */
/** @typedef {import("./paint/picture.js").Spot} Spot */
/** @typedef {{block: number, entry: number}} Hit */

/** Holds what is searched for among the schedules in view. */
export class ScheduleSeek {
  /** @param {ScheduleView} view @param {(spot: Spot) => void} choose */
  constructor(view, choose) {
    this.view = view;
    this.choose = choose;
    this.box = /** @type {HTMLInputElement} */ (byId("schedule-search"));
    /** @type {Hit[]} */
    this.hits = [];
    this.place = -1;
    /** What the hits are of. */
    this.text = "";
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this._enter(event.shiftKey ? -1 : 1);
    });
    this.box.addEventListener("search", () => void (this.box.value || this.clear()));
  }

  /** Puts the cursor into the box. */
  enter() {
    this.box.select();
  }

  /** Goes to another action that was found. @param {number} by */
  step(by) {
    const { hits } = this;
    if (!hits.length) return;
    this.place = (this.place + by + hits.length) % hits.length;
    const { block, entry } = hits[this.place];
    const data = this.view.blocks[block];
    if (!data) return;
    this.choose(spotOf(block, data.rankOf(entry), entry, data.drawn.start[entry]));
    this.view.reveal();
    this._count();
  }

  /** Ends the search. */
  clear() {
    if (document.activeElement === this.box)
      this.view.surface.canvas.focus({ preventScroll: true });
    this.box.value = "";
    this.show();
  }

  /** Searches anew, for other schedules are in view, or another text. */
  show() {
    this.text = this.box.value.trim();
    this.hits = this._find();
    this.place = -1;
    this._count();
  }

  /** @param {number} by */
  _enter(by) {
    const isNew = this.box.value.trim() !== this.text;
    if (isNew) this.show();
    if (isNew && by < 0) this.place = 0;
    this.step(by);
  }

  /** Returns what is wanted in the order of its start, a block after another. @returns {Hit[]} */
  _find() {
    const { blocks } = this.view;
    const wanted = this.text
      ? readSeek(this.text, [
          ...new Set(blocks.flatMap((data) => data?.kinds.map(({ name }) => name) ?? [])),
        ])
      : null;
    if (!wanted || wanted.called || wanted.node !== null || wanted.step !== null) return [];
    return blocks.flatMap((data, block) => {
      if (!data) return [];
      /** @type {Hit[]} */
      const found = [];
      const kinds =
        wanted.kinds &&
        new Set(data.kinds.flatMap(({ name }, i) => (wanted.kinds?.includes(name) ? [i] : [])));
      for (let row = 0; row < data.numRanks; row++) {
        if (!isRowWanted(wanted, { rank: data.rankName(row), node: -1 })) continue;
        for (let entry = data.bounds[row]; entry < data.bounds[row + 1]; entry++) {
          if (kinds && !kinds.has(data.class[entry])) continue;
          if (wanted.stage !== null && data.stage[entry] !== wanted.stage) continue;
          if (wanted.microbatch === null || data.microbatch[entry] === wanted.microbatch)
            found.push({ block, entry });
        }
      }
      return found.sort(
        (one, other) => data.drawn.start[one.entry] - data.drawn.start[other.entry],
      );
    });
  }

  _count() {
    const { hits, place, text } = this;
    this.box.toggleAttribute("aria-invalid", Boolean(text) && !hits.length);
    const count =
      place < 0
        ? t("seek.count", { count: number(hits.length) })
        : t("seek.place", { place: number(place + 1), count: number(hits.length) });
    byId("schedule-count").textContent = !text ? "" : hits.length ? count : t("seek.none");
  }
}
