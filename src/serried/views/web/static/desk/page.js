// The page: its parts, made and told of one another. One state, which the address bar holds; every
// view shows it, and every view changes it.
//
//   store       the state and its address        launch      launch files that were read
//   layout      the layout in view               map, list   its pictures
//   runs        traces and reports of checks     timelines   the trace in view
//   selection   what is pinned and pointed at    heats       the figure that colours the map
//   collectives the player of a group's collective    sharding   what ranks hold under ZeRO
//   plan        whether the job fits, and its step
//   diagnosis   what went wrong in a job, and with whom
//   opener      opens whatever is dropped or served
//   learn       the lessons, and cards on words
//   tabs        which of the views is open, that of schedules among them

import { Store } from "../base/store.js";
import { Waiting } from "../base/waiting.js";
import { TimelineDesk } from "../timeline/desk.js";
import { HeatDesk } from "./heats.js";
import { Launch } from "./launch/reading.js";
import { LayoutDesk } from "./layout.js";
import { Opener } from "./opening/opener.js";
import { layOutForPaper } from "./paper.js";
import {
  closeOthers,
  makeCollectives,
  makeDiagnosis,
  makeLearn,
  makePlan,
  makeSchedules,
  makeSharding,
} from "./players.js";
import { Runs } from "./runs.js";
import { Selection } from "./selection.js";
import { DEFAULTS, readState, writeState } from "./state/fields.js";
import { Unknown } from "./state/unknown.js";
import { Tabs } from "./tabs.js";
import { makeList, makeMap, makeMapTools } from "./views.js";

/** @typedef {import("./state/fields.js").State} State */

/** Holds the parts together. */
export class Page {
  constructor() {
    layOutForPaper();
    this.unknown = new Unknown(location.search);
    this.store = new Store(
      readState(location.search),
      (/** @type {State} */ state) =>
        this.unknown.behind(writeState(state, this._isServed ? ["view", "world_size"] : [])),
      () => this.launch.mark,
    );
    this.waiting = new Waiting((error) => this.layout.fail(error));
    this.layout = new LayoutDesk(this.store, this.waiting, {
      edited: () => this.launch.compare(),
      spoken: () => this.launch.retell(),
      shown: (scene) => this._shown(scene),
    });
    /** @type {Runs} */
    this.runs = new Runs(this.layout, {
      forget: () => this.launch.forget(),
      traced: (tracks) => this._traced(tracks),
      grown: (tracks) => this._grown(tracks),
      met: () => {
        this.tabs.met();
        // A run that was put on offer is to be chosen beside the one in view.
        this._tellTimeline();
      },
    });
    /** @type {Launch} */
    this.launch = new Launch(this.layout, () => this.opened);
    this.selection = new Selection(this.layout, this.runs, () => this);
    this.map = makeMap(this.layout, this.selection, {
      figures: (rank) => this._figures(rank),
      moved: () => this._moved(),
      painted: () => this._painted(),
    });
    /** @type {ReturnType<typeof makeCollectives>} */
    const { opening, player } = makeCollectives(this.layout, this.map, {
      opened: () => closeOthers(this, "collectives"),
      closed: () => this.selection.show(),
    });
    this.collectives = opening;
    this.player = player;
    /** @type {ReturnType<typeof makeSharding>} */
    this.sharding = makeSharding(this.layout, this.runs, () => closeOthers(this, "sharding"));
    /** @type {ReturnType<typeof makePlan>} */
    this.plan = makePlan(this.layout, this.runs, this.map);
    this.diagnosis = makeDiagnosis(this.layout, this.runs, this.map, () => this);
    this.list = makeList(this.layout, this.selection);
    this.timelines = new TimelineDesk(this._host());
    this.heats = new HeatDesk(this.layout, this.runs, this.selection, this.map, () => {
      return this.diagnosis.heat;
    });
    this.learn = makeLearn(this.layout, {
      visit: (search) => this.visit(search),
      turned: () => this.tabs.show(),
    });
    this.schedules = makeSchedules(this.layout);
    /** Parts whose module is fetched once it is needed. */
    this.later = [this.plan, this.schedules, this.player, this.sharding];
    /** @type {Tabs} */
    this.tabs = new Tabs(this);
    /** @type {Opener} */
    this.opener = new Opener(this);
    this.tools = makeMapTools(this.layout, this.map, this.heats);
    /** Kept once the page has shown what its address holds. */
    this.opened = Promise.resolve();
    window.addEventListener("popstate", () => this.waiting.until(this._return()));
  }

  /**
   * Whether the page opens on what it was served, where its address names neither tab nor job.
   * @returns {boolean}
   */
  get _isServed() {
    return Boolean(this.runs.offers.length || this.diagnosis.cases.length);
  }

  get isBusy() {
    const players = [this.diagnosis, this.learn, ...this.later];
    const parts = [this.waiting, this.layout, this.timelines, this.heats, ...players];
    const { redraw, relight } = this.map;
    return parts.some(({ isBusy }) => isBusy) || redraw.waiting || relight.waiting;
  }

  /** Shows the state that the address holds, or the first trace's own layout. */
  async open() {
    this.opened = this.waiting.until(this._begin());
    await this.opened;
  }

  /** Fetches what other tabs need, one after another, while nobody waits for it. */
  async prefetch() {
    for (const part of this.later) await part.prefetch();
  }

  async _begin() {
    await Promise.all([this.layout.speak(), this.diagnosis.open()]);
    await this.runs.open(this.diagnosis.opening);
    await this.opener.begin();
  }

  /** Returns to the state of a page that was just opened. */
  reset() {
    const { lang, trace, run, view } = this.store.state;
    this.launch.forget();
    this._arrive("");
    this.layout.edit(this.runs.own({ ...DEFAULTS, lang, trace, run, view }));
    this.timelines.view.goHome();
  }

  /**
   * Shows the state that an address's search part holds, in the language and with the run in view.
   * @param {string} search
   */
  visit(search) {
    const { lang, trace, run } = this.store.state;
    this.launch.forget();
    this._arrive(search);
    this.store.step({ ...readState(search), lang, trace, run });
    return this.waiting.until(this._recall(trace));
  }

  /** Returns the page as the timeline knows it. @returns {import("../timeline/state.js").Host} */
  _host() {
    const { layout, runs, selection, store } = this;
    return {
      store,
      get tracks() {
        return runs.tracks;
      },
      get trace() {
        return runs.asked;
      },
      get pinned() {
        return selection.pinned;
      },
      hover: (target) => selection.hover(target),
      pin: (span, rank) => selection.pinSpan(span, rank),
      shown: () => selection.show(),
      refresh: () => runs.refresh(),
      warm: (heat) => {
        store.step({ heat });
        void this.heats.take();
      },
      moved: () => this._moved(),
      fail: (error) => layout.fail(error),
    };
  }

  /** Takes the views as they were moved to into the state. */
  _moved() {
    this.store.soon({ map: String(this.map), time: String(this.timelines.view) });
  }

  /** Returns what the map says of a rank's figures. @param {number} rank */
  _figures(rank) {
    const figure = this.diagnosis.line(rank) || this.heats.line(rank);
    return [figure, ...(this.plan.desk?.traffic.lines(rank) ?? [])];
  }

  /** Draws anew what stands on the map and beside it. */
  _painted() {
    this.tools?.key.show();
    this.tools?.beside.follow();
    this.player?.desk?.redraw.request();
    this.plan?.desk?.traffic.redraw.request();
    this.diagnosis?.arrows.redraw.request();
  }

  /** Shows a layout in every view. @param {import("../base/scene.js").Scene} scene */
  _shown(scene) {
    const { state } = this.store;
    const drawn = this.layout.isDrawn ? scene : null;
    this.map.show(drawn, { arrange: state.arrange, cube: state.cube });
    this.tools.cube.show();
    void this.waiting.until(this.tools.beside.take());
    this.map.take(state.map);
    this.list.show(drawn);
    this._tellTimeline();
    void this.heats.take();
    this.selection.show();
    void this.collectives.take();
    void this.sharding.take();
    void this.plan.take();
    void this.diagnosis.take();
    void this.learn.take();
  }

  /**
   * Shows a trace that was sent, or what there is without one.
   * @param {import("../timeline/trace/tracks.js").Tracks | null} tracks
   */
  async _traced(tracks) {
    void this.sharding.take();
    if (!tracks) return this.heats.take();
    this.timelines.show(tracks);
    this._tellTimeline();
    this.selection.show();
    await Promise.all([this.timelines.take(), this.heats.take()]);
  }

  /**
   * Shows a trace that was sent again, longer than before.
   * @param {import("../timeline/trace/tracks.js").Tracks} tracks
   */
  async _grown(tracks) {
    this.timelines.grow(tracks);
    this._tellTimeline();
    this.selection.show();
    await this.timelines.take();
  }

  _tellTimeline() {
    const { choice, offer, planned } = this.runs;
    if (!offer && !planned) return;
    const isOwn = Boolean(planned) || this.runs.isOwn(offer);
    this.timelines.tell(choice.names, choice.chosen, isOwn);
  }

  /** Shows the state that the browser has gone back or forward to. */
  async _return() {
    const { trace } = this.store.state;
    this._arrive(location.search);
    this.store.take(readState(location.search));
    this.launch.recall(history.state);
    await this._recall(trace);
  }

  /** Says what an address holds that is not known here. @param {string} search */
  _arrive(search) {
    this.unknown.take(search);
    this.unknown.show();
  }

  /** Shows the state in every view. @param {string} trace  the trace that was in view before */
  async _recall(trace) {
    this.tabs.show();
    await this.layout.recall();
    if (trace !== this.store.state.trace) await this.runs.ask();
    else if (this.runs.tracks) {
      this.timelines.view.take(this.store.state.time);
      await Promise.all([this.timelines.take(), this.heats.take()]);
    }
  }
}
