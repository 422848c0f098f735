// The bar above the timeline: which trace, whether it is emulated, its bubble, what colours mean.

import { duration } from "../base/clock.js";
import { byId, make } from "../base/dom.js";
import { has, language, number, t } from "../base/i18n.js";
import { showPeriod } from "./period.js";
import { COLOURS, TURNS } from "./trace/colours.js";

/** @typedef {import("./trace/tracks.js").Tracks} Tracks */
/** @typedef {import("./trace/sheet.js").Colouring} Colouring */

/**
 * Shows what is known of the trace in view.
 * @param {import("./trace/tracks.js").Tracks} tracks
 * @param {string[]} names of all traces
 * @param {number} chosen number of the trace in view
 * @param {boolean} isOwn whether the map shows its layout
 */
export function showTimelineBar(tracks, names, chosen, isOwn) {
  const select = /** @type {HTMLSelectElement} */ (byId("trace"));
  select.replaceChildren(...names.map((name, value) => make("option", { value }, name)));
  select.value = String(names[chosen] ? chosen : 0);
  select.hidden = names.length < 2;
  byId("emulated").hidden = tracks.job.compute !== "emulated";
  byId("planned").hidden = !tracks.isPlanned;
  byId("timeline-plan").hidden = tracks.isPlanned;
  byId("timeline-section").classList.toggle("planned", tracks.isPlanned);
  byId("own-layout").hidden = isOwn;
  showBubble(tracks);
}

/**
 * Shows what is to be said of the trace in view; that its files have no proper end is known anyway
 * while they are being written.
 * @param {Tracks} tracks
 * @param {boolean} isWritten
 */
export function showWarnings({ warnings, torn }, isWritten) {
  const said = [warnings, ...(isWritten ? [] : [torn])].flatMap((each) => each[language()] ?? []);
  byId("warnings").hidden = !said.length;
  byId("warnings").textContent = said.join(" · ");
  byId("warnings").title = said.join("\n");
}

/**
 * Shows what rows may stand under and which it is.
 * @param {Tracks} tracks
 * @param {string} by
 * @param {string} folded
 */
export function showGroupings(tracks, by, folded) {
  const name = (/** @type {string} */ each) =>
    has(`under.${each}`) ? t(`under.${each}`) : t("timeline.by_kind", { kind: each });
  const options = ["", ...tracks.groupings].map((each) =>
    make("option", { value: each }, each ? name(each) : t("timeline.by_none")),
  );
  const select = /** @type {HTMLSelectElement} */ (byId("timeline-by"));
  select.replaceChildren(...options);
  select.value = by;
  const fold = byId("timeline-fold");
  fold.hidden = !by;
  fold.textContent = t(folded ? "timeline.unfold_all" : "timeline.fold_all");
}

/**
 * Shows what colours may mean, which it is, and what each one says.
 * @param {Tracks} tracks
 * @param {Colouring | null} colouring
 */
export function showColours(tracks, colouring) {
  const offered = COLOURS.filter(
    (each) => !each || each === "microbatch" || each === "step" || tracks.measured.includes(each),
  );
  const select = /** @type {HTMLSelectElement} */ (byId("timeline-colour"));
  select.replaceChildren(
    ...offered.map((each) => make("option", { value: each }, t(`colour.${each || "action"}`))),
  );
  select.value = colouring?.name ?? "";
  byId("actions").replaceChildren(...(colouring ? legend(tracks, colouring) : []));
}

/** @param {Tracks} tracks @param {Colouring} colouring */
function legend(tracks, colouring) {
  if (colouring.legend === "actions") return actionItems(tracks);
  if (colouring.legend === "turns") return turnItems(colouring);
  return scaleItems(colouring);
}

/** @param {Tracks} tracks */
function actionItems(tracks) {
  const used = [...tracks.actions.values()].filter((each) => tracks.used.includes(each.number));
  const byColour = new Map(
    used.map((each) => [each.colour, used.filter(({ colour }) => colour === each.colour)]),
  );
  return [...byColour].map(([colour, actions]) => {
    const swatch = make("span", { class: "swatch" });
    if (colour === tracks.waitColour) swatch.classList.add("waits");
    else swatch.style.backgroundColor = colour;
    const short = actions.length > 1 ? actions[0].name.split("_")[0] : actions[0].name;
    const meaning = actions
      .map(({ name }) => (has(`action.${name}`) ? t(`action.${name}`) : name))
      .join(" · ");
    return make(
      "li",
      { title: meaning },
      swatch,
      has(`short.${short}`) ? t(`short.${short}`) : short,
    );
  });
}

/**
 * Says that eight colours take turns: the first of each, and when it comes again.
 * @param {Colouring} colouring
 */
function turnItems({ name, colours }) {
  const items = TURNS.map((colour, i) =>
    item(
      colour,
      i === 0
        ? t("colour.turn", { name: t(`colour.${name}`), first: 0, next: TURNS.length })
        : String(i),
    ),
  );
  return [...items, item(colours[0], t("colour.none"))];
}

/**
 * Names the outermost classes in full and those between them by their edge.
 * @param {Colouring} colouring
 */
function scaleItems({ colours, edges = [] }) {
  const short = (/** @type {number} */ edge) => duration(Math.abs(edge)).replace(/\.0+ /, " ");
  const late = edges.filter((edge) => edge > 0);
  const words = [
    t("colour.unknown"),
    ...edges
      .filter((edge) => edge < 0)
      .map((edge, i) => (i ? short(edge) : t("colour.early", { value: short(edge) }))),
    t("colour.on_time"),
    ...late.map((edge, i) =>
      i + 1 < late.length ? short(edge) : t("colour.late", { value: short(edge) }),
    ),
  ];
  return colours.map((colour, i) => item(colour, words[i]));
}

/** @param {string} colour @param {string} text */
function item(colour, text) {
  const swatch = make("span", { class: "swatch" });
  swatch.style.background = colour;
  return make("li", {}, swatch, text);
}

/** @param {Tracks} tracks @param {import("./trace/tracks.js").Bubble} statistics */
function bubbleName({ isPlanned }, { pipeline }) {
  if (!pipeline) return "bubble.idle";
  return isPlanned ? "bubble.planned" : "bubble.measured";
}

/** Shows the bubble, or without a pipeline the period, once it is known. @param {Tracks} tracks */
export function showBubble(tracks) {
  const { statistics } = tracks;
  const place = byId("bubble");
  showPeriod(tracks, tracks.periods);
  if (tracks.periods?.periods) return void place.removeAttribute("title");
  const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(1)}%`;
  if (!statistics || statistics.bubble === null) {
    place.replaceChildren();
    return;
  }
  const parts = [
    make(
      "b",
      {},
      t(bubbleName(tracks, statistics), {
        share: percent(statistics.bubble),
      }),
    ),
  ];
  if (statistics.ideal !== null)
    parts.push(make("span", {}, t("bubble.ideal", { share: percent(statistics.ideal) })));
  place.replaceChildren(...parts);
  const { num_steps: some, all_steps: all } = statistics;
  const measured = t(some < all ? "bubble.title_some" : "bubble.title", {
    steps: number(some),
    all: number(all),
  });
  place.title = statistics.ideal === null ? measured : `${measured} ${t("bubble.ideal_title")}`;
}
