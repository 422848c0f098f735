// window.serried: what the page shows, read back. Tests use it; so may a script in the console.
//
// What is read of the Schedule view stands in schedule/readback.js, of the player in
// collective/readback.js, of the ZeRO panel in sharding/readback.js, of the Plan panel in
// plan/readback.js, of the Diagnose panel in diagnose/readback.js, of Learn in learn/readback.js.
//
//   busy()          whether an answer is awaited or a picture is still to be drawn
//   settled()       a promise that is kept once the page is not busy
//   opened()        a promise that is kept once nothing is being opened and the page is not busy
//   state()         the state that the address bar holds
//   written()       a promise that is kept once the address bar holds the newest view
//   view()          the map's and the timeline's view: numbers that change when it is moved
//   drawn()         how often each picture was drawn, and how many spans one by one
//   lit()           the ranks lit now, ascending; litBy(kind) those of one kind in view
//   groups()        the groups in view as {kind: [[rank, …], …]}
//   marks(rank)     [{label, mark, colour}] in the rank's cell
//   where(rank)     the middle of its cell, in pixels of the page; null when nothing is drawn
//   slices()        how many spans the timeline holds
//   slice(i)        {name, action, rank, stage, microbatch, step, peer, start_ns, end_ns, duration}
//   whereSlice(i)   the middle of its part in view, in pixels of the page; null when out of view
//   heat(rank)      the colour that a figure gives the rank on the map; null where none is in view
//   timeline()      its lines, colours, range and arrows, and how its picture came about

import { duration } from "../base/clock.js";
import { css, theme } from "../base/theme.js";
import { diagnoseReadback } from "../diagnose/readback.js";
import { learnReadback } from "../learn/readback.js";
import { timelineReadback } from "../timeline/readback.js";

/** @typedef {import("./page.js").Page} Page */

/** Returns a promise to keep once nothing is busy. @param {() => boolean} isBusy */
function rest(isBusy) {
  return async () => {
    do await new Promise(requestAnimationFrame);
    while (isBusy());
  };
}

/** What is read of parts whose module is not there yet. */
const ABSENT = {
  collective: () => null,
  plan: () => null,
  schedules: () => [],
  sharding: () => null,
  traffic: () => ({ links: 0, most: 0, isShown: false }),
};

/** Publishes what the page shows. @param {Page} page */
export function publish(page) {
  const own = ownReadback(page);
  Object.defineProperty(window, "serried", {
    get: () => Object.assign({ ...ABSENT }, ...page.later.map(({ readback }) => readback), own),
  });
}

/** @param {Page} page */
function ownReadback(page) {
  const { layout, map, runs, selection, store } = page;
  const timeline = page.timelines.view;
  const busy = () => page.isBusy;
  return {
    ...diagnoseReadback(page.diagnosis),
    ...learnReadback(page.learn),
    busy,
    settled: rest(busy),
    opened: rest(() => busy() || page.opener.isBusy),
    state: () => ({ ...store.state }),
    written: async () => {
      while (store.timer !== null) await new Promise(requestAnimationFrame);
    },
    view: () => ({
      map: { x: map.camera.x, y: map.camera.y, scale: map.camera.scale },
      timeline: {
        start: timeline.time.start,
        end: timeline.time.end,
        scrolled: timeline.scrolled,
      },
    }),
    drawn: () => ({ ...map.drawn, ...timeline.drawings, spans: timeline.drawnSpans }),
    lit: () => Array.from(selection.lit()?.ranks ?? []),
    litBy: (/** @type {string} */ kind) => {
      const place = layout.scene?.kinds.findIndex((each) => each.kind === kind) ?? -1;
      return Array.from(selection.lit()?.byKind[place] ?? []);
    },
    groups: () => groups(page),
    marks: (/** @type {number} */ rank) =>
      (layout.isDrawn ? (layout.scene?.kinds ?? []) : [])
        .filter(({ group }) => group[rank] >= 0)
        .map(({ label, mark, group, colour }) => ({
          label: `${label}${group[rank]}`,
          mark,
          colour: css(colour[group[rank]]),
        })),
    where: (/** @type {number} */ rank) => map.where(rank),
    slices: () => runs.tracks?.length ?? 0,
    slice: (/** @type {number} */ i) => slice(page, i),
    whereSlice: (/** @type {number} */ i) => timeline.where(i),
    heat: (/** @type {number} */ rank) => {
      const colour = map.heat?.colour(rank, theme().dark) ?? -1;
      return colour < 0 ? null : css(colour);
    },
    timeline: () => timelineReadback(timeline),
  };
}

/** @param {Page} page */
function groups({ layout: { scene, isDrawn } }) {
  if (!scene || !isDrawn) return {};
  return Object.fromEntries(
    scene.kinds.map(({ kind }, i) => [
      kind,
      Array.from({ length: scene.numGroups(i) }, (_, group) => Array.from(scene.members(i, group))),
    ]),
  );
}

/** @param {Page} page @param {number} i */
function slice({ runs: { tracks } }, i) {
  const span = tracks?.span(i);
  if (!tracks || !span) return null;
  return {
    name: tracks.actionName(span),
    action: tracks.actions.get(span.kind)?.name,
    rank: tracks.rankOf(i),
    stage: span.stage,
    microbatch: span.microbatch,
    step: span.step,
    peer: span.peer,
    start_ns: span.start,
    end_ns: span.end,
    duration: duration(span.end - span.start),
  };
}
