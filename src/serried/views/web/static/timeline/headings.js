// The headings of the timeline: what its rows stand under, and which groups are folded.

import { say } from "../base/announcer.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { showGroupings } from "./bar.js";
import { groupName } from "./speech.js";
import { askRows } from "./trace/answers.js";
import { readRuns, runsText } from "./trace/range.js";

/** @typedef {import("./trace/rows.js").Grouping} Grouping */
/** @typedef {import("./trace/tracks.js").Tracks} Tracks */

/** Asks how the rows of a trace are grouped, and folds groups; the state is the page's. */
export class Headings {
  /**
   * @param {import("./state.js").Host} host
   * @param {import("./view.js").TimelineView} view
   * @param {(change: {by?: string, folded: string}) => void} edit
   */
  constructor(host, view, edit) {
    this.host = host;
    this.view = view;
    this.edit = edit;
    /** Groupings of the trace in view that were asked for. @type {Map<string, Grouping>} */
    this.groupings = new Map();
    byId("timeline-by").addEventListener("change", (event) =>
      edit({ by: /** @type {HTMLSelectElement} */ (event.target).value, folded: "" }),
    );
    byId("timeline-fold").addEventListener("click", () => this._foldAll());
  }

  /** Forgets what is known of the trace before. */
  clear() {
    this.groupings.clear();
  }

  /** Shows what rows may stand under. @param {Tracks} tracks @param {string} by */
  offer(tracks, by) {
    showGroupings(tracks, by, this.host.store.state.folded);
  }

  /** Puts the rows under the headings that the state asks for. @param {Tracks} tracks */
  async take(tracks) {
    const { host, view } = this;
    const { state } = host.store;
    const by = tracks.groupings.includes(state.by) ? state.by : "";
    this.offer(tracks, by);
    const grouping = by ? (this.groupings.get(by) ?? (await this._ask(tracks, by))) : null;
    if (host.store.state.by !== state.by || tracks !== host.tracks) return;
    view.group(grouping, new Set(readRuns(state.folded, grouping?.size.length ?? 0)));
  }

  /** Folds a group, or unfolds it. @param {number} group */
  fold(group) {
    const { grouping, folded } = this.view;
    if (!grouping) return;
    const next = new Set(folded);
    if (!next.delete(group)) next.add(group);
    this.edit({ folded: runsText(next) });
    const [name] = groupName(grouping, group);
    say(t(next.has(group) ? "timeline.folded" : "timeline.unfolded", { group: name }));
  }

  /** Folds every group, or unfolds all where every one is folded. */
  _foldAll() {
    const { grouping, folded } = this.view;
    if (!grouping) return;
    const all = [...new Set(grouping.of)];
    this.edit({ folded: folded.size === all.length ? "" : runsText(all) });
  }

  /** @param {Tracks} tracks @param {string} by */
  async _ask(tracks, by) {
    const grouping = await askRows(this.host.trace, by);
    if (tracks === this.host.tracks) this.groupings.set(by, grouping);
    return grouping;
  }
}
