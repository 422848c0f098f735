// The tables of the tab in view as files: what the page shows, row by row.

import { byId } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { figureName } from "../desk/heats.js";

/** @typedef {import("../desk/page.js").Page} Page */
/** @typedef {string | number} Cell */
/**
 * @typedef {object} Table
 * @property {string} name              what a file of it is called
 * @property {string} key               the sentence that names it
 * @property {() => Cell[][]} rows      the first holds the heads
 * @property {() => string} [document]  the JSON of it where there is a document of its own
 */

/** Tables that stand on the page as tables, by the body of each, and the tab whose they are. */
const SHOWN = /** @type {const} */ ([
  ["plan-memory-rows", "plan-memory", "export.memory"],
  ["plan-time-rows", "plan-step", "export.step"],
  ["plan-traffic-rows", "plan-traffic", "export.traffic"],
  ["plan-compared-rows", "plan-compared", "export.compared"],
  ["plan-found-rows", "plan-search", "export.front"],
]);
const SPAN_HEADS = ["rank", "name", "stage", "microbatch", "step", "start_ns", "end_ns"];
const ACTION_HEADS = ["schedule", "rank", "action", "start", "end"];

/** Returns the tables that are in view. @param {Page} page @returns {Table[]} */
export function tablesOf(page) {
  const { view } = page.store.state;
  if (view === "schedule") return actionsOf(page);
  return [
    ...plansOf(),
    ...runsOf(page),
    ...diagnosesOf(page),
    ...figuresOf(page),
    ...groupsOf(page),
  ];
}

/** @param {Page} page @returns {Table[]} */
function groupsOf({ layout, list }) {
  const { scene } = layout;
  if (!scene?.kinds.length) return [];
  const rows = () => [
    ["kind", "group", "ranks"],
    ...scene.kinds.flatMap(({ kind }, i) =>
      Array.from({ length: scene.numGroups(i) }, (_, group) => [
        kind,
        group,
        scene.members(i, group).join(" "),
      ]),
    ),
  ];
  const name = `groups-${scene.worldSize}`;
  return [{ name, key: "groups.title", rows, document: () => list.json() }];
}

/** @param {Page} page @returns {Table[]} */
function figuresOf({ map: { heat } }) {
  if (!heat) return [];
  const rows = () => [
    ["rank", `${figureName(heat.figure)} (${heat.unit})`],
    ...Array.from(heat.values, (value, rank) => [rank, value]),
  ];
  return [{ name: `figure-${heat.figure}`, key: "export.figure", rows }];
}

/** @returns {Table[]} */
function plansOf() {
  return SHOWN.filter(([body]) => byId(body).childElementCount && byId(body).checkVisibility()).map(
    ([body, name, key]) => ({ name, key, rows: () => rowsOf(byId(body)) }),
  );
}

/**
 * Returns the cells of a table as they are shown.
 * @param {HTMLElement} body
 * @returns {string[][]}
 */
function rowsOf(body) {
  return [.../** @type {HTMLTableSectionElement} */ (body).rows].map((row) =>
    [...row.cells].map((cell) => (cell.innerText || cell.textContent || "").trim()),
  );
}

/** @param {Page} page @returns {Table[]} */
function runsOf({ runs: { tracks }, timelines: { findings, view } }) {
  if (!tracks || !byId("timeline").checkVisibility()) return [];
  const found = findings.found;
  const lang = /** @type {"en" | "zh"} */ (language());
  const cards = () => [
    ["kind", "finding", "more", "share", "ranks"],
    ...(found?.cards ?? []).map(({ kind, lines, more, share, ranks }) => [
      kind,
      lines[lang].join(" "),
      more[lang].join(" "),
      share ?? "",
      ranks.join(" "),
    ]),
  ];
  const told = found?.cards.length
    ? [{ name: "findings", key: "export.findings", rows: cards }]
    : [];
  const spans = () => [SPAN_HEADS, ...spansIn(tracks, view.time)];
  return [...told, { name: `spans-${tracks.name}`, key: "export.spans", rows: spans }];
}

/**
 * Returns the spans in view that were sent one by one.
 * @param {import("../timeline/trace/tracks.js").Tracks} tracks
 * @param {{start: number, end: number}} time
 * @returns {Cell[][]}
 */
function spansIn(tracks, time) {
  const rows = [];
  for (let id = 0; id < tracks.length; id++) {
    const span = tracks.span(id);
    if (!span || span.end < time.start || span.start > time.end) continue;
    const { stage, microbatch, step, start, end } = span;
    const known = [stage, microbatch, step].map((each) => (each < 0 ? "" : each));
    rows.push([tracks.rankOf(id), tracks.actionName(span), ...known, start, end]);
  }
  return rows;
}

/** @param {Page} page @returns {Table[]} */
function actionsOf({ schedules: { desk } }) {
  const blocks = desk?.view.blocks ?? [];
  if (!blocks.length) return [];
  const rows = () => [
    ACTION_HEADS,
    ...blocks.flatMap((data) =>
      data
        ? Array.from({ length: data.length }, (_, entry) => [
            data.header.name,
            data.rankName(data.rankOf(entry)),
            data.actionName(entry),
            data.times.start[entry],
            data.times.end[entry],
          ])
        : [],
    ),
  ];
  return [{ name: "schedule-actions", key: "export.actions", rows }];
}

/** @param {Page} page @returns {Table[]} */
function diagnosesOf({ diagnosis: { shown } }) {
  if (!shown) return [];
  const told = shown.in[language()] ?? shown.in.en;
  const rows = () => [
    ["finding", "class", "ranks", "rank", "waits for", "in"],
    ...(told.findings.length ? told.findings : [told]).flatMap((finding) => {
      const of = [finding.verdict, finding.class, (finding.ranks ?? []).join(" ")];
      const waits = finding.waiting.map((each) => [each.rank, each.waits_for.join(" "), each.what]);
      return (waits.length ? waits : [["", "", ""]]).map((each) => [...of, ...each]);
    }),
  ];
  const document = () => JSON.stringify(told, null, 2);
  return [{ name: `diagnosis-${shown.name}`, key: "diagnose.title", rows, document }];
}

/** Writes rows as CSV, as RFC 4180 has it. @param {Cell[][]} rows */
export function csvOf(rows) {
  const cell = (/** @type {Cell} */ value) => {
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Writes rows as JSON: an object for each, by the heads. @param {Cell[][]} rows */
export function jsonOf([heads, ...rows]) {
  const named = heads.map((head, i) => String(head) || t("export.column", { number: i + 1 }));
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(named.map((head, i) => [head, row[i] ?? ""]))),
    null,
    1,
  );
}
