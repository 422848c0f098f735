// What stands below the map: the player of a group's collective, a step under ZeRO, the job's plan
// and diagnoses, each told of the job in view.

import { byId } from "../base/dom.js";
import { language } from "../base/i18n.js";
import { DiagnoseDesk } from "../diagnose/desk.js";
import { LearnDesk } from "../learn/desk.js";
import { Heat } from "../map/heat.js";
import { planWords } from "../plan/state.js";
import { Later } from "./later.js";
import { OF_A_RUN, ownLayout } from "./runs.js";
import { Collectives } from "./side/collectives.js";
import { DEFAULTS, question } from "./state/fields.js";

/** @typedef {import("./layout.js").LayoutDesk} LayoutDesk */

/**
 * @typedef {object} PartsInView  the parts of the page that a diagnosis has a say in
 * @property {{choose(rank: number): unknown}} selection
 * @property {{show(): unknown}} heats
 * @property {import("../diagnose/desk.js").Undiagnosed} opener
 */

/** What closes each player: one of them stands below the map at a time. */
const CLOSED = {
  collectives: { collective: "", step: "" },
  sharding: { sharded: "", event: "" },
};

/**
 * Closes the players that one is opened in place of.
 * @param {Record<keyof typeof CLOSED, {take(): Promise<unknown>}> & {layout: LayoutDesk}} page
 * @param {keyof typeof CLOSED} opened
 */
export function closeOthers(page, opened) {
  for (const name of /** @type {(keyof typeof CLOSED)[]} */ (Object.keys(CLOSED))) {
    if (name === opened) continue;
    page.layout.store.set(CLOSED[name]);
    void page[name].take();
  }
}

/**
 * Returns a part of the page that is fetched once the state needs it.
 * @template {import("./later.js").Desk} D
 * @template M
 * @param {LayoutDesk} layout
 * @param {(state: import("./state/fields.js").State) => unknown} isNeeded
 * @param {() => Promise<M>} fetch
 * @param {(module: M) => import("./later.js").Made<D>} make
 */
function later(layout, isNeeded, fetch, make) {
  return new Later(fetch, make, {
    isNeeded: () => Boolean(isNeeded(layout.store.state)),
    failed: (error) => layout.fail(error),
  });
}

/**
 * Makes the player of collectives.
 * @param {LayoutDesk} layout
 * @param {import("../map/view.js").MapView} map
 * @param {{opened: () => void, closed: () => void}} events
 */
export function makeCollectives(layout, map, { opened, closed }) {
  const { store } = layout;
  const offers = () => ({
    algorithms: layout.words?.collectives ?? {},
    choices: layout.words?.collective_choices ?? {},
  });
  /** @type {import("../collective/desk.js").CollectiveHost} */
  const host = {
    store,
    question: questionOf(layout),
    planned: () => planWords(store.state),
    label: (kind) => layout.scene?.kinds.find((each) => each.kind === kind)?.label ?? kind,
    spot: (rank) => map.spot(rank),
    offers,
    closed,
  };
  const player = later(
    layout,
    ({ collective }) => collective,
    () => import("../collective/later.js"),
    ({ CollectiveDesk, collectiveReadback }) => {
      const desk = new CollectiveDesk(host);
      return { desk, readback: collectiveReadback(desk) };
    },
  );
  const opening = new Collectives(
    {
      store,
      collectives: () => Object.keys(offers().algorithms),
      groups: () => groupsOf(layout),
      isPlanned: () => store.state.view === "plan",
      opened,
    },
    player,
  );
  return { opening, player };
}

/** Returns the first group of each kind in view. @param {LayoutDesk} layout */
function groupsOf({ scene }) {
  return (scene?.kinds ?? []).flatMap(({ dim, kind, bounds }, i) =>
    bounds.length > 1
      ? [{ dim, ranks: bounds[1] - bounds[0], group: `${kind}:${scene?.members(i, 0)[0]}` }]
      : [],
  );
}

/**
 * Makes the panel of ZeRO.
 * @param {LayoutDesk} layout
 * @param {import("./runs.js").Runs} runs
 * @param {() => void} opened
 */
export function makeSharding(layout, runs, opened) {
  const { store } = layout;
  const host = {
    store,
    question: questionOf(layout),
    stage: (/** @type {string} */ zero) => layout.edit({ zero, event: "" }),
    model: () => planWords(store.state),
    planned: () => (runs.offer?.has_step_plan ? runs.trace : -1),
  };
  const panel = later(
    layout,
    ({ sharded }) => sharded,
    () => import("../sharding/later.js"),
    ({ ShardingDesk, shardingReadback }) => {
      const desk = new ShardingDesk(host);
      return { desk, readback: shardingReadback(desk) };
    },
  );
  byId("sharding-open").addEventListener("click", () => {
    const isOpen = Boolean(store.state.sharded);
    if (!isOpen) opened();
    store.step({ sharded: isOpen ? "" : "1", zero_priced: isPlanned(store.state), event: "" });
    void panel.take();
  });
  return panel;
}

/** Returns plan where the job has a plan of its own: in its tab, or of a model that was chosen. */
/** @param {import("./state/fields.js").State} state */
function isPlanned({ cluster, model, view, zero_priced: priced }) {
  const isOwn = model !== DEFAULTS.model || cluster !== DEFAULTS.cluster;
  return priced || (view === "plan" || isOwn ? "plan" : "");
}

/**
 * Makes the tab of the plan.
 * @param {LayoutDesk} layout
 * @param {import("./runs.js").Runs} runs
 * @param {import("../map/view.js").MapView} map
 */
export function makePlan(layout, runs, map) {
  /** @type {import("../plan/state.js").PlanHost} */
  const host = {
    store: layout.store,
    question: questionOf(layout),
    pick: (change) => layout.edit(change),
    step: (planned_step) => layout.edit({ ...OF_A_RUN, planned_step }),
    timeline: (words) => runs.plan(words),
  };
  const plan = later(
    layout,
    ({ links, view }) => view === "plan" || links,
    () => import("../plan/later.js"),
    ({ PlanDesk, PlanTraffic, planReadback }) => {
      const desk = new PlanDesk(host, new PlanTraffic(host, map));
      return { desk, readback: planReadback(desk) };
    },
  );
  byId("links-open").addEventListener("click", () => {
    layout.store.step({ links: layout.store.state.links ? "" : "1" });
    void plan.take();
  });
  return plan;
}

/** Makes the tab of schedules. @param {LayoutDesk} layout */
export function makeSchedules(layout) {
  return later(
    layout,
    ({ view }) => view === "schedule",
    () => import("../schedule/later.js"),
    ({ ScheduleDesk, scheduleReadback }) => {
      const desk = new ScheduleDesk(layout.store);
      return { desk, readback: scheduleReadback(desk) };
    },
  );
}

/**
 * Makes the tab of diagnoses.
 * @param {LayoutDesk} layout
 * @param {import("./runs.js").Runs} runs
 * @param {import("../map/view.js").MapView} map
 * @param {() => PartsInView} page
 * @returns {DiagnoseDesk<Heat>}
 */
export function makeDiagnosis(layout, runs, map, page) {
  const closed = { ...CLOSED.collectives, ...CLOSED.sharding };
  return new DiagnoseDesk({
    store: layout.store,
    open: (change, shown) => {
      const { state } = layout.store;
      const own = shown ? { ...ownLayout(state, shown), ...closed } : state;
      layout.edit({ ...own, ...change });
    },
    isOwn: (shown) => runs.isOwn(shown),
    heatOf: (payload) => new Heat(payload),
    places: { spot: (rank) => map.spot(rank), inView: () => map.inView },
    choose: (rank) => page().selection.choose(rank),
    warmed: () => page().heats.show(),
    runs: () => page().opener,
  });
}

/**
 * Makes Learn: the lessons, and the cards on words.
 * @param {LayoutDesk} layout
 * @param {{visit: (search: string) => unknown, turned: () => void}} events
 */
export function makeLearn(layout, { visit, turned }) {
  const { store } = layout;
  return new LearnDesk({
    store,
    question: (words) => {
      const { rank } = store.state;
      const told = { ...planWords(store.state), ...(rank ? { rank } : {}), ...words };
      return question(store.state, language(), told);
    },
    visit,
    turn: (card) => {
      store.step({ card, side: "learn" });
      turned();
    },
  });
}

/** @param {LayoutDesk} layout */
function questionOf({ store }) {
  return (/** @type {Record<string, string>} */ words) => question(store.state, language(), words);
}
