// The pointer over the timeline: what it lights in every view, and the tip that says what is there.

import { spokenSlice } from "./speech.js";
import { hideTip, showTip } from "../base/tip.js";

/** @typedef {import("./paint/spot.js").Spot} Spot */

/** How long the pointer rests before the server is asked what is under it. */
const REST_MS = 70;

/**
 * Follows the pointer; where only shares of a track are known, the server is asked what lies there.
 */
export class TimelineHover {
  /** @param {import("./desk.js").TimelineDesk} timelines */
  constructor(timelines) {
    this.timelines = timelines;
    /** @type {number | null} */
    this.resting = null;
    this.asking = new AbortController();
  }

  get isBusy() {
    return this.resting !== null;
  }

  /** Lights what is at a spot. @param {Spot} spot */
  take(spot) {
    const { desk, view } = this.timelines;
    this.asking.abort();
    if (this.resting !== null) clearTimeout(this.resting);
    this.resting = null;
    const { span, rank } = spot;
    if (span !== null) return this._light(span, rank);
    desk.hover(rank < 0 ? null : { type: "rank", rank });
    hideTip();
    this.resting = setTimeout(() => {
      this.resting = null;
      this.asking = new AbortController();
      const { signal } = this.asking;
      void this.timelines.while(
        this.timelines.askAt(spot, signal).then((found) => {
          if (signal.aborted || found < 0) return;
          view.hovered = found;
          view.redraw.request();
          this._light(found, rank);
        }),
      );
    }, REST_MS);
  }

  /** @param {number} span @param {number} rank */
  _light(span, rank) {
    const { desk, view } = this.timelines;
    if (span >= 0) desk.hover({ type: "slice", slice: span, rank });
    else desk.hover(rank < 0 ? null : { type: "rank", rank });
    if (span < 0 || !desk.tracks) return hideTip();
    const { tracks } = desk;
    const tip = () => {
      const { x, y } = view.pointerOnPage();
      showTip([spokenSlice(span, tracks), ...desk.plans.lines(span)], x, y);
    };
    tip();
    if (desk.plans.isAsked)
      void this.timelines.while(
        desk.plans.explain(span).then(() => void (view.hovered === span && tip())),
      );
  }
}
