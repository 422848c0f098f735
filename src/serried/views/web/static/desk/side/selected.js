// The panel of what is selected: a rank, a group, a slice, or what a search has found.

import { duration } from "../../base/clock.js";
import { byId, make } from "../../base/dom.js";
import { counted, has, number, t } from "../../base/i18n.js";
import { markImage } from "../../base/canvas/marks.js";
import { bytesText } from "../../base/quantity.js";
import { css } from "../../base/theme.js";

/** @typedef {import("../../base/scene.js").Scene} Scene */
/** @typedef {import("../../timeline/trace/tracks.js").Tracks} Tracks */
/**
 * @typedef {object} RankAnswer  what Python says of a rank (serried.rank/1)
 * @property {number} rank
 * @property {Record<string, number>} coordinates
 * @property {number} node
 * @property {number} local_rank
 * @property {number[]} gpus
 * @property {number} stage
 * @property {number | null} previous
 * @property {number | null} next
 * @property {Record<string, number[][]>} groups
 * @property {Record<string, number[]>} numbers
 * @property {Record<string, string>} notes
 */
/** @typedef {(rank: number) => void} Choose */

const MEMBERS_WRITTEN = 32;

/** Facts whose term goes by another key. @type {Record<string, string>} */
const TERMS = {
  coordinates: "numbering",
  gpu: "rank",
  kind: "group",
  local_rank: "local_rank",
  microbatch: "microbatch",
  node: "node",
  rank: "rank",
  spread: "nvlink",
  stage: "stage",
};

/** Shows `children` as what is selected. @param {...(Node | string)} children */
function fill(...children) {
  byId("selected").hidden = false;
  /** @type {HTMLElement} */ (byId("selected").querySelector("div")).replaceChildren(...children);
}

/** Shows that nothing is selected. */
export function showNothing() {
  fill();
  byId("selected").hidden = true;
}

/**
 * Shows a rank as Python describes it.
 * @param {RankAnswer} answer
 * @param {Scene} scene
 * @param {Choose} choose
 */
export function showRank(answer, scene, choose) {
  const rank = (/** @type {number} */ each) =>
    make("button", { type: "button", class: "rank", click: () => choose(each) }, String(each));
  const coordinates = Object.entries(answer.coordinates)
    .reverse()
    .filter(([axis]) => (scene.job.axes[axis] ?? 2) > 1)
    .map(([axis, at]) => `${axis} ${at}`);
  const facts = [
    fact("node", String(answer.node)),
    fact("local_rank", String(answer.local_rank)),
    fact("gpu", answer.gpus.join(", ")),
    fact("coordinates", coordinates.join(" · ") || t("selected.no_coordinates")),
  ];
  if (scene.job.num_stages > 1) {
    const before =
      answer.previous === null
        ? [t("selected.first_stage")]
        : [t("selected.takes_from"), " ", rank(answer.previous)];
    const after =
      answer.next === null
        ? [t("selected.last_stage")]
        : [t("selected.sends_to"), " ", rank(answer.next)];
    facts.push(fact("stage", `${answer.stage}`), fact("pipeline", ...before, " · ", ...after));
  }
  const shown = scene.kinds.map(({ kind }) => kind);
  const others = Object.keys(answer.groups).filter((kind) => !shown.includes(kind));
  const rest = make(
    "details",
    {},
    make("summary", {}, counted("selected.other_groups", others.length)),
    groupTable(others, answer, scene),
  );
  fill(
    make("h3", {}, t("selected.rank", { rank: answer.rank })),
    make("dl", { class: "facts" }, ...facts.flat()),
    groupTable(shown, answer, scene),
    ...(others.length ? [rest] : []),
  );
}

/**
 * Shows a group of a kind in view.
 * @param {Scene} scene
 * @param {number} kind
 * @param {number} group
 */
export function showGroup(scene, kind, group) {
  const { label, kind: name, nodes, mark, colour } = scene.kinds[kind];
  const note = scene.allKinds.find((each) => each.name === name)?.note ?? "";
  const members = scene.members(kind, group);
  fill(
    make("h3", {}, markImage(mark, css(colour[group])), `${label} ${group}`),
    make("p", {}, note),
    make(
      "dl",
      { class: "facts" },
      ...fact("kind", name),
      ...fact("size", counted("unit.ranks", members.length)),
      ...fact("spread", spread(nodes[group])),
      ...fact("members", `[${members.join(", ")}]`),
    ),
    make("p", { id: "collective-offer" }),
  );
}

/**
 * Shows a slice of the timeline.
 * @param {Tracks} tracks
 * @param {number} slice
 * @param {Choose} choose
 */
export function showSlice(tracks, slice, choose) {
  const span = tracks.span(slice);
  if (!span) return fill(make("p", { class: "note" }, t("selected.awaited")));
  const action = tracks.actions.get(span.kind);
  const link = (/** @type {number} */ rank) =>
    make("button", { type: "button", class: "rank", click: () => choose(rank) }, String(rank));
  const meaning = has(`action.${action?.name}`) ? t(`action.${action?.name}`) : "";
  /** @param {string} key @param {number} value */
  const maybe = (key, value) => (value < 0 ? [] : fact(key, String(value)));
  const facts = [
    ...fact("rank", link(tracks.rankOf(slice))),
    ...maybe("stage", span.stage),
    ...maybe("microbatch", span.microbatch),
    ...maybe("step", span.step),
    ...fact("start", duration(span.start)),
    ...fact("end", duration(span.end)),
    ...fact("duration", duration(span.end - span.start)),
    ...(span.peer < 0 ? [] : fact("peer", link(span.peer))),
    ...moved(span, tracks.groups[span.group]),
  ];
  const swatch = make("span", { class: "swatch" });
  swatch.style.background = action?.colour ?? "";
  fill(
    make("h3", {}, swatch, t("selected.slice", { action: tracks.actionName(span) })),
    make("p", {}, meaning),
    make("dl", { class: "facts" }, ...facts),
  );
}

/**
 * Returns what the collectives of a slice moved, and over which ranks.
 * @param {{bytes: number}} span
 * @param {{count: number, ranks: string} | undefined} group
 */
function moved({ bytes }, group) {
  if (bytes < 0) return [];
  const times = group && group.count > 1 ? ` · ${counted("unit.collectives", group.count)}` : "";
  return [
    ...fact("bytes", `${bytesText(bytes, 1000)}${times}`),
    ...(group ? fact("members", group.ranks) : []),
  ];
}

/**
 * Shows what a search has found.
 * @param {string} text
 * @param {Int32Array} ranks
 * @param {Choose} choose
 */
export function showFound(text, ranks, choose) {
  const buttons = Array.from(ranks.subarray(0, MEMBERS_WRITTEN), (rank) =>
    make("button", { type: "button", class: "rank", click: () => choose(rank) }, String(rank)),
  );
  const more =
    ranks.length > MEMBERS_WRITTEN
      ? [counted("selected.and_more", ranks.length - MEMBERS_WRITTEN)]
      : [];
  fill(
    make("h3", {}, t("selected.found", { count: number(ranks.length), text })),
    make("p", { class: "ranks" }, ...buttons, ...more),
  );
}

/** Writes over how many nodes a group spreads. @param {number} nodes */
export function spread(nodes) {
  return nodes === 1 ? t("spread.one") : t("spread.many", { count: number(nodes) });
}

/** @param {string} key @param {...(Node | string)} value */
function fact(key, ...value) {
  const term = TERMS[key] ? { "data-term": TERMS[key] } : {};
  return [make("dt", term, t(`fact.${key}`)), make("dd", {}, ...value)];
}

/** @param {string[]} kinds @param {RankAnswer} answer @param {Scene} scene */
function groupTable(kinds, answer, scene) {
  const rows = kinds.flatMap((kind) => {
    const look = scene.kinds.find((each) => each.kind === kind);
    const lists = answer.groups[kind];
    const note = answer.notes[kind] ?? "";
    if (!lists.length) return [row(kind, look?.label ?? kind, t("selected.no_group"), note)];
    return lists.map((ranks, i) =>
      row(
        kind,
        `${look?.label ?? kind} ${answer.numbers[kind][i]}`,
        written(ranks),
        note,
        look,
        answer.numbers[kind][i],
      ),
    );
  });
  return make("table", { class: "groups" }, make("tbody", {}, ...rows));
}

/**
 * @param {string} kind
 * @param {string} name
 * @param {string} ranks
 * @param {string} note
 * @param {import("../../base/scene.js").Kind} [look]
 * @param {number} [group]
 */
function row(kind, name, ranks, note, look, group = 0) {
  const mark = look ? [markImage(look.mark, css(look.colour[group]), 12)] : [];
  return make(
    "tr",
    { title: `${kind}: ${note}` },
    make("th", { scope: "row" }, ...mark, name),
    make("td", {}, ranks),
  );
}

/** @param {number[]} ranks */
function written(ranks) {
  const more = ranks.length > MEMBERS_WRITTEN ? `, … ${counted("unit.ranks", ranks.length)}` : "";
  return `[${ranks.slice(0, MEMBERS_WRITTEN).join(", ")}${more}]`;
}
