// The Schedule view, read back as part of window.serried.
//
//   schedules()            the schedules in view, from the top: name, numbers, faults
//   action(block, name)    {rank, stage, microbatch, kind, start, end, critical, source}
//   idles(block)           [{rank, start, end, cause, source}], every idle interval
//   whereAction(block, name), whereIdle(block, i), whereStrip(block, rank)
//                          a point of it, in pixels of the page; null when out of view
//   scheduleView()         {start, end, scrolled}
//   scheduleDrawn()        {frames, actions, ms}: the last frames' times, of actions drawn one by
// one
//   panSchedule(share)     pans by a share of the width, as a drag does

import { namesOf } from "./state.js";

/** Returns what is published of the view. @param {import("./desk.js").ScheduleDesk} desk */
export function scheduleReadback(desk) {
  const { view } = desk;
  const at = (/** @type {number} */ block) =>
    /** @type {import("./model/simulated.js").Simulated} */ (view.blocks[block]);
  return {
    schedules: () =>
      namesOf(desk.state).map((name, i) => ({
        name,
        ...(view.blocks[i]?.header ?? {}),
        fault: desk.answers.faults.get(name)?.sentence ?? "",
      })),
    action: (/** @type {number} */ block, /** @type {string} */ name) => action(at(block), name),
    idles: (/** @type {number} */ block) =>
      Array.from(at(block).idle.start, (_, i) => idle(at(block), i)),
    whereAction: (/** @type {number} */ block, /** @type {string} */ name) => {
      const data = at(block);
      const entry = data.entryOf(name);
      return entry < 0
        ? null
        : view.where(block, data.rankOf(entry), data.drawn.start[entry], data.drawn.end[entry]);
    },
    whereIdle: (/** @type {number} */ block, /** @type {number} */ i) => {
      const { rank, start, end } = idle(at(block), i);
      return view.where(block, rank, start, end);
    },
    whereStrip: (/** @type {number} */ block, /** @type {number} */ rank) => {
      const bar = view.where(block, rank, view.time.start, view.time.end);
      return bar && { x: bar.x, y: bar.y + view.stack.bar / 2 + view.stack.strip / 2 };
    },
    scheduleView: () => ({
      start: view.time.start,
      end: view.time.end,
      scrolled: view.scroller.scrollTop,
    }),
    scheduleDrawn: () => ({
      frames: view.drawings.frames,
      ms: [...view.drawings.ms],
      actions: view.drawnActions,
    }),
    panSchedule: (/** @type {number} */ share) => view.pan(share),
  };
}

/** @param {import("./model/simulated.js").Simulated} data @param {string} name */
function action(data, name) {
  const entry = data.entryOf(name);
  if (entry < 0) return null;
  const source = data.source[entry];
  return {
    rank: data.rankOf(entry),
    stage: data.stage[entry],
    microbatch: data.microbatch[entry],
    kind: data.kinds[data.class[entry]].name,
    start: data.times.start[entry],
    end: data.times.end[entry],
    critical: Boolean(data.critical[entry]),
    source: source < 0 ? "" : data.actionName(source),
  };
}

/** @param {import("./model/simulated.js").Simulated} data @param {number} i */
function idle(data, i) {
  const { bounds, start, end, cause, source } = data.idle;
  let rank = 0;
  while (bounds[rank + 1] <= i) rank++;
  return {
    rank,
    start: start[i],
    end: end[i],
    cause: data.causes[cause[i]],
    source: source[i] < 0 ? "" : data.actionName(source[i]),
  };
}
