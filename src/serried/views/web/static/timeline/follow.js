// One microbatch of one step, followed across the stages: its spans lit, all others dimmed, and
// from each stage to the next by a key.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { paintVeil } from "./paint/veil.js";

/** @typedef {import("./state.js").Host} Host */

/** Holds whether the selected span's microbatch is followed; the state is the page's. */
export class FollowDesk {
  /**
   * @param {Host} host
   * @param {import("./view.js").TimelineView} view
   */
  constructor(host, view) {
    this.host = host;
    this.view = view;
    /** Ids of the spans that are lit. @type {Set<number>} */
    this.lit = new Set();
    /** Whether the view is to be moved to the microbatch once its spans are known. */
    this.isAwaited = false;
    view.layers.unshift((picture, context) => {
      if (!this.isShown) return;
      paintVeil(
        picture,
        context,
        () => true,
        (_spans, _i, id) => this.lit.has(id),
      );
    });
  }

  /** Whether a microbatch is followed. */
  get isShown() {
    return Boolean(this.host.store.state.followed && this.lit.size > 1);
  }

  /** Takes the spans of the selected microbatch. */
  link() {
    this.lit = new Set(this.view.links?.spans ?? []);
    if (this.isAwaited && this.lit.size > 1) this._zoom();
  }

  /** Follows the microbatch of the selected span, once it is known which spans are of it. */
  start() {
    this.host.store.step({ followed: "1" });
    this.isAwaited = true;
    this.link();
    this.view.redraw.request();
  }

  /** Ends it. */
  clear() {
    if (!this.host.store.state.followed) return;
    this.host.store.soon({ followed: "" });
    this.isAwaited = false;
    this.view.redraw.request();
  }

  /** Goes to the next stage of the selected microbatch, or back. @param {number} by */
  along(by) {
    const { tracks } = this.host;
    const next = this._beside(by);
    if (tracks && next >= 0) this.host.pin(next, tracks.rankOf(next));
  }

  /** Adds to the panel of the selected span the way to follow it. @param {number} span */
  offer(span) {
    const found = this.host.tracks?.span(span);
    const place = byId("selected").querySelector("div");
    if (!found || found.microbatch < 0 || !place) return;
    const isOn = Boolean(this.host.store.state.followed);
    const button = make(
      "button",
      { type: "button", id: "follow-microbatch", "aria-pressed": String(isOn) },
      t("follow.microbatch", { microbatch: found.microbatch, step: found.step }),
    );
    button.addEventListener("click", () => {
      if (this.isShown) this.clear();
      else this.start();
      button.setAttribute("aria-pressed", String(Boolean(this.host.store.state.followed)));
    });
    place.querySelector(".follow")?.remove();
    place.append(make("p", { class: "follow" }, button, " ", t("follow.keys")));
  }

  /**
   * Returns the computation of the microbatch that comes next, or before; -1 where there is none.
   * @param {number} by
   */
  _beside(by) {
    const { tracks } = this.host;
    const { selected } = this.view;
    const at = tracks?.span(selected);
    if (!tracks || !at) return -1;
    const others = [...this.lit]
      .map((id) => tracks.span(id))
      .filter((span) => span && tracks.actions.get(span.kind)?.computes);
    const way = /** @type {import("./trace/tracks.js").Slice[]} */ (others).sort(
      (one, other) => one.start - other.start || one.id - other.id,
    );
    if (by > 0) return way.find((each) => each.start > at.start)?.id ?? -1;
    return way.findLast((each) => each.start < at.start)?.id ?? -1;
  }

  _zoom() {
    this.isAwaited = false;
    const spans = [...this.lit].map((id) => this.host.tracks?.span(id));
    const start = Math.min(...spans.map((span) => span?.start ?? Infinity));
    const end = Math.max(...spans.map((span) => span?.end ?? -Infinity));
    if (end > start) this.view.stretch(start, end, 1.1);
  }
}
