// The tables of the tab in view as files: what the page shows, row by row.

import { byId } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { askDocument } from "../base/questions.js";
import { placeName } from "../collective/words.js";
import { figureName } from "../desk/heats.js";

/** @typedef {import("../desk/page.js").Page} Page */
/** @typedef {string | number} Cell */
/**
 * @typedef {object} Table
 * @property {string} name              what a file of it is called
 * @property {string} key               the sentence that names it
 * @property {() => Cell[][] | Promise<Cell[][]>} rows  the first holds the heads
 * @property {() => string | Promise<string>} [document]  the JSON of it where it has one of its own
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
  if (view === "schedule") return [...actionsOf(page), ...idleOf(page)];
  return [
    ...plansOf(),
    ...runsOf(page),
    ...statisticsOf(page),
    ...gpusOf(page),
    ...movesOf(page),
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
function idleOf({ schedules: { desk } }) {
  const blocks = (desk?.view.blocks ?? []).filter((data) => data !== null);
  if (!blocks.length) return [];
  const rows = () => [
    ["schedule", "cause", "time", "share"],
    ...blocks.flatMap(({ causes, header, numRanks }) =>
      causes.map((cause) => [
        header.name,
        t(`cause.${cause}`),
        header.idle.causes[cause],
        header.idle.causes[cause] / (header.makespan * numRanks),
      ]),
    ),
  ];
  return [{ name: "schedule-idle", key: "idle.title", rows }];
}

/**
 * Returns all that is measured of the run in view: its ranks as rows, the whole as a document.
 * @param {Page} page @returns {Table[]}
 */
function statisticsOf({ runs: { tracks }, timelines }) {
  const isRun = tracks && !tracks.isPlanned && byId("timeline").checkVisibility();
  if (!isRun || byId("gpus").checkVisibility()) return [];
  const ask = () => askDocument(`trace/statistics?trace=${timelines.host.trace}`);
  const rows = async () => {
    const { ranks } = await ask();
    const heads = Object.keys(ranks[0] ?? {});
    const cells = (/** @type {Record<string, unknown>} */ rank) =>
      heads.map((head) => (typeof rank[head] === "number" ? rank[head] : textOf(rank[head])));
    return /** @type {Cell[][]} */ ([heads, ...ranks.map(cells)]);
  };
  const document = async () => JSON.stringify(await ask(), null, 1);
  return [{ name: `statistics-${tracks.name}`, key: "export.statistics", rows, document }];
}

/**
 * Returns all that is measured of a profile of GPUs: each rank's time as rows, the whole as a
 * document.
 * @param {Page} page @returns {Table[]}
 */
function gpusOf({ runs: { tracks }, timelines: { gpus } }) {
  const { stats } = gpus;
  if (!tracks || !stats || !byId("gpus").checkVisibility()) return [];
  const rows = () => {
    const heads = Object.keys(stats.ranks[0]?.time ?? {});
    const cells = (/** @type {typeof stats.ranks[0]} */ { host, rank, time }) =>
      [rank, host, ...heads.map((head) => time[head])].map((each) => each ?? "");
    return [["rank", "host", ...heads], ...stats.ranks.map(cells)];
  };
  const document = () => JSON.stringify(stats, null, 1);
  return [{ name: `statistics-${tracks.name}`, key: "export.statistics", rows, document }];
}

/** Writes what one cell of a document holds. @param {unknown} value */
function textOf(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {Page} page @returns {Table[]} */
function movesOf({ player: { desk } }) {
  const pictures = desk?.isOpen ? desk.stage.pictures : [];
  return pictures.flatMap(({ execution }) => {
    if (!execution) return [];
    const { block_bytes: bytes, name, algorithm, places } = execution.header;
    const rows = () => [
      ["step", "from", "to", "bytes", "blocks"],
      ...Array.from({ length: execution.numSteps }, (_, step) =>
        execution
          .links(step)
          .map((link) => [
            step + 1,
            placeName(places[link.source]),
            placeName(places[link.target]),
            link.count * bytes,
            [...link.blocks].join(" "),
          ]),
      ).flat(),
    ];
    return [{ name: `${name}-${algorithm}`, key: "export.moves", rows }];
  });
}

/** @param {Page} page @returns {Table[]} */
function diagnosesOf({ diagnosis }) {
  const { shown } = diagnosis;
  if (!shown) return [];
  const whole = async () => {
    const told = await diagnosis.whole(shown);
    return told[language()] ?? told.en;
  };
  const rows = async () => {
    const told = await whole();
    return [
      ["finding", "class", "ranks", "rank", "waits for", "in"],
      ...(told.findings.length ? told.findings : [told]).flatMap((finding) => {
        const of = [finding.verdict, finding.class, (finding.ranks ?? []).join(" ")];
        const waits = finding.waiting.map((each) => [
          each.rank,
          each.waits_for.join(" "),
          each.what,
        ]);
        return (waits.length ? waits : [["", "", ""]]).map((each) => [...of, ...each]);
      }),
    ];
  };
  const document = async () => JSON.stringify(await whole(), null, 2);
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
