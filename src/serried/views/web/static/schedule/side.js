// Beside the stacked schedules: what is chosen, idle time by its cause, and how to read the
// picture.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { numberText, percentText } from "../base/quantity.js";
import {
  blockTitle,
  causeText,
  extentText,
  inputText,
  kindName,
  pathText,
  waitText,
} from "./words.js";

/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {import("./paint/picture.js").Spot} Spot */

/** Shows what is chosen. @param {Spot | null} spot @param {Simulated | null} data */
export function showSpot(spot, data) {
  const place = /** @type {HTMLElement} */ (byId("schedule-selected").querySelector("div"));
  const isNothing = !spot || !data || (spot.entry < 0 && spot.idle < 0);
  byId("schedule-selected").hidden = isNothing;
  if (isNothing) return;
  const facts = spot.entry >= 0 ? actionFacts(spot, data) : idleFacts(spot, data);
  const title = spot.entry >= 0 ? data.actionName(spot.entry) : t("spot.idle_title");
  const list = facts.flatMap(([name, value]) => [make("dt", {}, t(name)), make("dd", {}, value)]);
  place.replaceChildren(
    make("h3", {}, title, make("small", {}, blockTitle(data.header.name, data))),
    make("dl", { class: "facts" }, ...list),
  );
}

/** @param {Spot} spot @param {Simulated} data @returns {[string, string][]} */
function actionFacts({ entry, rank }, data) {
  const pair = data.partner(entry);
  /** @type {[string, string][]} */
  const facts = [
    ["fact.kind", kindName(data, entry)],
    ["fact.rank", String(data.rankName(rank))],
    ["fact.stage", String(data.stage[entry])],
    ["fact.microbatch", String(data.microbatch[entry])],
    ["fact.time", extentText(data.times.start[entry], data.times.end[entry])],
    ["fact.input", inputText(data, entry)],
    [
      "fact.waited",
      waitText(data, pair >= 0 ? Math.min(entry, pair) : entry).join("; ") || t("spot.at_once"),
    ],
    [
      "fact.held",
      t("spot.held", {
        to_weight: data.held.to_weight[entry],
        to_input: data.held.to_input[entry],
      }),
    ],
    .../** @type {[string, string][]} */ (
      data.isMeasured ? [] : [["fact.path", pathText(data, entry)]]
    ),
  ];
  if (pair >= 0) facts.splice(1, 0, ["fact.pair", data.actionName(pair)]);
  return facts;
}

/** @param {Spot} spot @param {Simulated} data @returns {[string, string][]} */
function idleFacts({ idle, rank }, data) {
  return [
    ["fact.rank", String(data.rankName(rank))],
    ["fact.cause", causeText(data, idle)],
    ["fact.time", extentText(data.idle.start[idle], data.idle.end[idle])],
  ];
}

/**
 * Shows idle time by its cause, a bar for each schedule, all to one scale.
 * @param {(Simulated | null)[]} blocks
 */
export function showCauses(blocks) {
  const shown = blocks.filter((data) => data !== null);
  const most = Math.max(1e-9, ...shown.map((data) => data.header.idle.total / data.numRanks));
  const parts = shown.map((data) => causesOf(data, most));
  /** @type {HTMLElement} */ (byId("schedule-causes").querySelector("div")).replaceChildren(
    ...parts,
  );
}

/** @param {Simulated} data @param {number} most idle time of a rank that fills the width */
function causesOf(data, most) {
  const { header, causes } = data;
  const title = blockTitle(header.name, data);
  const made = causes
    .map((cause) => ({ cause, time: header.idle.causes[cause] }))
    .filter(({ time }) => time > 0);
  const bar = make("div", { class: "causes", "aria-hidden": true });
  bar.style.width = `${(100 * header.idle.total) / data.numRanks / most}%`;
  bar.append(
    ...made.map(({ cause, time }) => {
      const piece = make("span", { class: `cause ${cause.toLowerCase()}` });
      piece.style.flexGrow = String(time / header.idle.total);
      return piece;
    }),
  );
  const rows = made.map(({ cause, time }) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        make("span", { class: `swatch cause ${cause.toLowerCase()}` }),
        t(`cause.${cause}`),
      ),
      make("td", {}, numberText(time)),
      make("td", {}, percentText(time / (header.makespan * data.numRanks))),
    ),
  );
  const total = make(
    "tr",
    { class: "total" },
    make("th", { scope: "row" }, t("idle.total")),
    make("td", {}, numberText(header.idle.total)),
    make("td", {}, percentText(header.idle.total / (header.makespan * data.numRanks))),
  );
  const adds =
    header.latency_adds === null
      ? []
      : [make("p", { class: "note" }, t("idle.latency", { count: header.latency_adds }))];
  return make(
    "section",
    { "aria-label": title },
    make("h4", {}, title),
    bar,
    make("table", {}, make("tbody", {}, ...rows, total)),
    ...adds,
  );
}

/** Shows what the numbers mean. */
export function showNotes() {
  const notes = ["times", "bubbles", "activations", "causes", "path"].flatMap((note) => [
    make("dt", {}, t(`note.${note}.title`)),
    make("dd", {}, t(`note.${note}`)),
  ]);
  /** @type {HTMLElement} */ (byId("schedule-notes").querySelector("dl")).replaceChildren(...notes);
}

/**
 * Shows what the colours and textures stand for.
 * @param {import("./model/simulated.js").KindTable[]} kinds in view
 * @param {boolean} hasChunks
 * @param {boolean} hasPairs
 */
export function showKinds(kinds, hasChunks, hasPairs) {
  const items = kinds.map(({ name, colour }) => {
    const swatch = make("span", { class: `swatch kind-${name.toLowerCase()}` });
    swatch.style.backgroundColor = colour;
    return make("li", { title: t(`action.${name}`) }, swatch, `${name} ${t(`half.${name}`)}`);
  });
  if (hasChunks)
    items.push(
      make("li", {}, make("span", { class: "swatch first-stage" }), t("schedule.first_stage")),
    );
  if (hasPairs)
    items.push(make("li", {}, make("span", { class: "swatch pair" }), t("short.OVERLAP_F_B")));
  byId("schedule-kinds").replaceChildren(...items);
}
