// The tables of a plan: memory by item and place, the step by part, and what travels.

import { duration } from "../base/clock.js";
import { make } from "../base/dom.js";
import { number, t } from "../base/i18n.js";
import { bytesText, percentText } from "../base/quantity.js";
import { itemsOf, partsOf, stacked, stagesText } from "./planned.js";
import { PLAN_FIELDS, isAssumed } from "./state.js";

/** @typedef {import("./planned.js").PlanAnswer} PlanAnswer */

/** Writes seconds. @param {number} seconds */
export function secondsText(seconds) {
  return duration(seconds * 1e9);
}

/**
 * Says in one line what is planned, and what of it no launch file said.
 * @param {PlanAnswer} plan
 * @param {import("./state.js").PlanState} state
 */
export function jobText({ job }, state) {
  const names = PLAN_FIELDS.filter((field) => isAssumed(state, field)).map((field) =>
    t(`plan.${field}`),
  );
  return names.length ? t("plan.job_assumed", { job, names: names.join(t("names.join")) }) : job;
}

/** Writes the MFU by each convention of FLOPs, the plan's own first. @param {PlanAnswer} plan */
export function mfuText({ flops_convention: own, mfu_by_convention: by }) {
  const others = Object.keys(by).filter((name) => name !== own);
  const told = [own, ...others].map((name) => `${name} ${percentText(by[name])}`);
  return t("plan.mfu", { shares: told.join(" · ") });
}

/** Returns what the colours of memory stand for. @param {PlanAnswer} plan */
export function memoryKey(plan) {
  return itemsOf(plan).map(({ name }) =>
    make("li", {}, ...named(plan.words.memory[name] ?? name, plan.colours[name])),
  );
}

/** Returns the rows of memory: an item each, and their sum. @param {PlanAnswer} plan */
export function memoryRows(plan) {
  const head = [t("plan.stage"), ...plan.memory.map(stagesText)];
  const rows = itemsOf(plan).map(({ name, bytes }) =>
    row(named(plan.words.memory[name] ?? name, plan.colours[name]), bytes.map(sizeText)),
  );
  const sums = plan.memory.map(({ total }) => bytesText(total));
  return [heading(head), ...rows, row([t("plan.sum")], sums)];
}

/**
 * Returns the rows of the step as a waterfall: each part begins where the one above it ends.
 * @param {PlanAnswer} plan
 */
export function timeRows(plan) {
  const all = plan.time.step_s;
  const rows = partsOf(plan).map(({ name, from, to }) => {
    const figures = [secondsText(to - from), percentText((to - from) / all)];
    const made = row(named(plan.words.time[name] ?? name, plan.colours[name]), figures);
    made.append(bar(from / all, to / all, plan.colours[name]));
    return made;
  });
  const sum = row([t("plan.step")], [secondsText(all), percentText(1)]);
  sum.append(bar(0, 1, "transparent"));
  const heads = [t("plan.part"), t("plan.time"), t("plan.share"), t("plan.estimated")];
  return [heading(heads), ...rows, sum];
}

/** @param {number} from @param {number} to  both as shares of the step @param {string} colour */
function bar(from, to, colour) {
  const drawn = make("i", { class: "estimated", "aria-hidden": "true" });
  drawn.style.setProperty("--colour", colour ?? "var(--faint)");
  drawn.style.marginLeft = `${100 * from}%`;
  drawn.style.width = `${Math.max(0.3, 100 * (to - from))}%`;
  return make("td", { class: "bar" }, drawn);
}

/** Returns the rows of what travels: a collective each. @param {PlanAnswer} plan */
export function trafficRows({ traffic, words }) {
  const heads = ["group", "collective", "ranks", "bytes", "times", "sent", "link", "beside"];
  const said = (/** @type {string} */ name) => words.traffic[name] ?? name;
  return [
    heading(heads.map((head) => t(`plan.${head}`))),
    ...traffic.map((each) =>
      row(
        [each.kind],
        [
          each.collective,
          number(each.ranks),
          bytesText(each.size_bytes),
          number(Math.round(each.times)),
          bytesText(each.sent_bytes * each.times),
          said(each.link),
          said(each.beside),
        ],
      ),
    ),
  ];
}

/** Tells a place in the pipeline. @param {PlanAnswer} plan @param {number} place */
export function placeLines({ memory, words }, place) {
  const { first_rank: rank, items, total } = memory[place];
  const parts = stacked(items, Object.keys(words.memory)).reverse();
  return [
    t("plan.place", { stages: stagesText(memory[place]), rank, size: bytesText(total) }),
    ...parts.map(({ name, from, to }) => `${words.memory[name] ?? name}: ${bytesText(to - from)}`),
  ];
}

/** @param {number} bytes */
function sizeText(bytes) {
  return bytes ? bytesText(bytes) : "";
}

/** @param {string} word @param {string | undefined} colour */
function named(word, colour) {
  const swatch = make("span", { class: "swatch" });
  swatch.style.background = colour ?? "transparent";
  return [swatch, " ", word];
}

/** @param {string[]} names */
function heading(names) {
  return make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
}

/** @param {(Node | string)[]} name @param {string[]} values */
function row(name, values) {
  const cells = values.map((value) => make("td", {}, value));
  return make("tr", {}, make("th", { scope: "row" }, ...name), ...cells);
}
