// The period of a job without a pipeline, in place of a bubble: what each rank's steps were spent
// on, as a bar of parts that add up to it.

import { duration } from "../base/clock.js";
import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { percentText } from "../base/quantity.js";

/** @typedef {import("./trace/tracks.js").Tracks} Tracks */
/** @typedef {import("./trace/tracks.js").RankPeriod} RankPeriod */
/** @typedef {import("./trace/tracks.js").Periods} Periods */
/** @typedef {{name: string, colour: string, us: number}} Part */

/** Kinds of action whose colours the parts have; what was not recorded has none. */
const COLOUR_OF = {
  data: "SPAN",
  compute: "F",
  communication: "ALL_REDUCE",
  optimizer: "OPTIMIZER",
};
const SHOWN = 64;
/** Below this width the panel stays closed until it is asked for. */
const WIDE = 720;

/**
 * Shows the period of a trace in the bar, and what it is made of below; null takes both away.
 * @param {Tracks} tracks
 * @param {Periods | null} found
 */
export function showPeriod(tracks, found) {
  const panel = byId("period");
  const periods = found?.periods ?? null;
  if (!found || !periods) {
    panel.hidden = true;
    panel.replaceChildren();
    return;
  }
  const { mean } = periods;
  const share = percentText(mean.compute_us / mean.period_us);
  const toggle = make(
    "button",
    { type: "button", id: "period-toggle", "aria-controls": "period", title: t("period.title") },
    make("b", {}, t("period.is", { time: time(mean.period_us) })),
    make("span", {}, t("period.computing", { share })),
  );
  const open = (/** @type {boolean} */ isOpen) => {
    panel.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", String(isOpen));
  };
  toggle.addEventListener("click", () => open(panel.hidden));
  byId("bubble").replaceChildren(toggle);
  // Another language says it all again, and leaves it as open as it was.
  open(panel.childElementCount ? !panel.hidden : window.innerWidth >= WIDE);
  panel.replaceChildren(legend(tracks, mean), table(tracks, periods.ranks));
}

/**
 * Returns the parts of a period, which add up to it.
 * @param {Tracks} tracks
 * @param {Omit<RankPeriod, "rank" | "host" | "waited_for_us">} of
 * @returns {Part[]}
 */
export function partsOf(tracks, of) {
  const actions = [...tracks.actions.values()];
  const colour = (/** @type {string} */ kind) =>
    actions.find((each) => each.name === kind)?.colour ?? "";
  return [
    { name: "data", colour: colour(COLOUR_OF.data), us: of.data_us },
    { name: "compute", colour: colour(COLOUR_OF.compute), us: of.compute_us },
    { name: "communication", colour: colour(COLOUR_OF.communication), us: of.communication_us },
    { name: "optimizer", colour: colour(COLOUR_OF.optimizer), us: of.optimizer_us },
    { name: "unrecorded", colour: "", us: of.before_us + of.gaps_us },
  ];
}

/** @param {Tracks} tracks @param {Omit<RankPeriod, "rank" | "host" | "waited_for_us">} mean */
function legend(tracks, mean) {
  const items = partsOf(tracks, mean).map(({ name, colour, us }) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = colour;
    const words = `${t(`period.${name}`)} ${time(us)} (${percentText(us / mean.period_us)})`;
    return make("li", {}, swatch, words);
  });
  return make("ul", { class: "legend", "aria-label": t("period.parts") }, ...items);
}

/** @param {Tracks} tracks @param {RankPeriod[]} ranks */
function table(tracks, ranks) {
  const longest = Math.max(...ranks.map((each) => each.period_us));
  const names = ["data", "compute", "communication", "optimizer", "unrecorded"];
  const words = ["host", "period", ...names, "waited"].map((each) => t(`period.${each}`));
  const heads = [t("fact.rank"), ...words].map((each) => make("th", { scope: "col" }, each));
  heads.splice(2, 0, make("td", {}));
  const rows = ranks.slice(0, SHOWN).map((each) => {
    const parts = partsOf(tracks, each);
    const cells = [each.period_us, ...parts.map(({ us }) => us)].map((us) =>
      make("td", {}, time(us)),
    );
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, String(each.rank)),
      make("td", {}, each.host),
      make("td", { class: "bar" }, bar(parts, longest)),
      ...cells,
      make("td", {}, each.waited_for_us > 0 ? time(each.waited_for_us) : ""),
    );
  });
  if (ranks.length > SHOWN) {
    const more = t("period.more", { count: ranks.length - SHOWN });
    rows.push(make("tr", {}, make("td", { colspan: heads.length }, more)));
  }
  return make(
    "table",
    { class: "period" },
    make("caption", {}, t("period.caption")),
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows),
  );
}

/** @param {Part[]} parts @param {number} longest */
function bar(parts, longest) {
  const pieces = parts.map(({ name, colour, us }) => {
    const piece = make("span", { title: `${t(`period.${name}`)} ${time(us)}` });
    piece.style.width = `${(100 * us) / longest}%`;
    piece.style.background = colour;
    return piece;
  });
  return make("div", { "aria-hidden": "true" }, ...pieces);
}

/** @param {number} us */
function time(us) {
  return duration(us * 1e3);
}
