// Showing: what the desk holds, written into the parts of the page that are not pictures.

import { say } from "../base/announcer.js";
import { byId, make } from "../base/dom.js";
import { blame, fillForm, showForm, typeName } from "./side/form.js";
import { t } from "../base/i18n.js";
import { showFound, showGroup, showNothing, showRank, showSlice } from "./side/selected.js";
import { headline, showBasics, showExplanation, showLegend, showTerms } from "./side/prose.js";
import { spokenTarget } from "./speech.js";
import { asksFor } from "./state/fields.js";
import { showTimelineBar } from "../timeline/bar.js";
import { explainTerms } from "../base/tip.js";

/** @typedef {import("./desk.js").Desk} Desk */
/** @typedef {import("./side/selected.js").RankAnswer} RankAnswer */

/** Shows what stands on the page whatever the layout. @param {Desk} desk */
export function showWords(desk) {
  if (!desk.words) return;
  fillForm(desk.words);
  byId("hint").hidden = Boolean(desk.state.dims || desk.state.kinds);
  byId("hint").replaceChildren(
    make("strong", {}, t("hint.title")),
    make("span", {}, t("hint.text")),
    make("span", {}, t("hint.drop")),
  );
  showBasics(desk.words, desk.scene);
  showTerms(desk.words);
  showOtherRun(other.run, other.shown);
  if (desk.scene) return;
  showNothing();
  showExplanation(null);
}

/** The run that the page's link is of though it is not open, and what stands here. */
const other = { run: "", shown: "" };

/**
 * Says that the page's link is of a run that is not open; "" where that is not so.
 * @param {string} run
 * @param {string} shown  the name of the trace that stands here, "" for none
 */
export function showOtherRun(run, shown) {
  Object.assign(other, { run, shown });
  const note = byId("trace-other");
  note.hidden = !run;
  note.textContent = run ? t(shown ? "trace.other" : "trace.none", { run, shown }) : "";
}

/** Shows the layout in view. @param {Desk} desk @param {import("../base/scene.js").Scene} scene */
export function showScene(desk, scene) {
  const drawn = desk.isDrawn ? scene : null;
  showForm(desk.state, scene);
  byId("headline").textContent = headline(scene);
  if (!desk.state.view)
    document.title = `${typeName(desk.state.dims)} ${scene.worldSize} · serried`.trim();
  byId("command").textContent = scene.command;
  byId("hint").hidden = Boolean(drawn);
  /** @type {HTMLSelectElement} */ (byId("arrange")).value = desk.state.arrange;
  if (desk.words) showBasics(desk.words, scene);
  showExplanation(scene.explanation);
  showLegend(scene);
  desk.map.show(drawn, desk.state.arrange === "stage");
  desk.map.take(desk.state.map);
  desk.list.show(drawn);
  showTimeline(desk);
  desk.heats.show();
  showPinned(desk);
}

/** Shows what is known of the trace in view. @param {Desk} desk */
export function showTimeline({ tracks, offer, offers, state }) {
  if (!tracks || !offer) return;
  showTimelineBar(
    tracks,
    offers.map(({ name }) => name),
    state.trace,
    asksFor(state, offer.question),
  );
}

/** Shows what is pinned in every view, and says it. @param {Desk} desk */
export function showPinned(desk) {
  const { scene, tracks, pinned: target } = desk;
  const choose = (/** @type {number} */ rank) => desk.choose(rank);
  desk.timelines.select(target?.type === "slice" ? target.slice : -1);
  desk.list.mark(target?.type === "group" ? target : null);
  if (target?.type === "slice" && tracks) showSlice(tracks, target.slice, choose);
  else if (target?.type === "group" && scene) showGroup(scene, target.kind, target.group);
  else if (target?.type === "ranks") showFound(desk.state.find, target.ranks, choose);
  else if (target?.type === "rank") desk.askRank(target.rank);
  else showNothing();
  if (target?.type === "slice") void desk.plans.show(target.slice);
  explainTerms(desk.words?.terms ?? []);
  desk.light();
  say(target && scene ? spokenTarget(target, scene, tracks) : "");
}

/** Shows a rank as Python describes it. @param {Desk} desk @param {RankAnswer} answer */
export function showAnswer(desk, answer) {
  if (!desk.scene || desk.pinned?.type !== "rank" || desk.pinnedRank !== answer.rank) return;
  showRank(answer, desk.scene, (rank) => desk.choose(rank));
  explainTerms(desk.words?.terms ?? []);
}

/**
 * Shows what was wrong with a question, and what still stands; "" for nothing.
 * @param {Desk} desk
 * @param {string} sentence
 * @param {string} [field]
 */
export function complain(desk, sentence, field = "") {
  const kept =
    desk.isDrawn && desk.scene
      ? [make("span", {}, t("error.kept", { job: headline(desk.scene) }))]
      : [];
  byId("alert").replaceChildren(...(sentence ? [make("b", {}, sentence), ...kept] : []));
  byId("map-frame").classList.toggle("stale", Boolean(sentence));
  if (sentence) showForm(desk.state, null);
  blame(field);
}
