// The list of schedules in the form: which stand one under another, and which may be added.

import { byId, make } from "../base/dom.js";
import { has, t } from "../base/i18n.js";
import { measuredAbout, readMeasured, stepField } from "./measured.js";
import { MOST_NAMES, PRESETS, movedUp, namesOf, presetOf } from "./state.js";
import { blockTitle, refusalTexts } from "./words.js";

/** @typedef {import("./state.js").ScheduleState} ScheduleState */
/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {{sentence: string, field: string}} Fault */
/**
 * @typedef {{name: string, source: string, chunks: number | null, takes_group: boolean}} Offered
 */

/** @typedef {{schedules: Offered[], runs: string[]}} Offers  runs: the names of the traces */

/**
 * Shows the presets and the schedules of a state, each with what cannot be.
 * @param {ScheduleState} state
 * @param {Offers} offered
 * @param {Map<string, Fault>} faults
 * @param {(name: string) => Simulated | null} known
 * @param {(names: string) => void} change
 */
export function showList(state, offered, faults, known, change) {
  showPresets(state);
  const names = namesOf(state);
  const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.id;
  const items = names.map((name, place) => {
    const data = known(name);
    const measured = readMeasured(name);
    const title = blockTitle(name, data, offered.runs);
    const replace = (/** @type {string} */ other) =>
      change([...new Set(names.map((each) => (each === name ? other : each)))].join(","));
    const up = button("up", name, title, "↑", () => change(movedUp(names, place)));
    up.disabled = names.length < 2;
    const away = button("away", name, title, "×", () =>
      change(names.filter((each) => each !== name).join(",")),
    );
    away.disabled = names.length < 2;
    const fault = faults.get(name);
    const text = data?.isMeasured ? measuredAbout(data) : aboutText(name);
    const about = make(
      "span",
      { title: text },
      make("b", {}, title),
      make("small", {}, text),
      ...(measured ? [stepField(measured, data, replace)] : []),
    );
    const refused =
      data && !fault ? refusalTexts(data).map((why) => make("p", { class: "refused" }, why)) : [];
    return make(
      "li",
      fault ? { class: "faulty" } : {},
      about,
      up,
      away,
      ...(fault && !fault.field ? [make("p", { class: "fault" }, fault.sentence)] : []),
      ...refused,
    );
  });
  byId("schedule-names").replaceChildren(...items);
  showAdd(names, offered);
  if (focused) document.getElementById(focused)?.focus();
}

/** Says what a schedule is, "" of one that there is not. @param {string} name */
export function aboutText(name) {
  return has(`about.${name}`) ? t(`about.${name}`) : "";
}

/**
 * @param {string} act
 * @param {string} name
 * @param {string} title
 * @param {string} sign
 * @param {() => void} click
 */
function button(act, name, title, sign, click) {
  const label = t(`names.${act}`, { name: title });
  return make(
    "button",
    { type: "button", id: `schedule-${act}-${name}`, "aria-label": label, title: label, click },
    sign,
  );
}

/** @param {ScheduleState} state */
function showPresets(state) {
  const select = /** @type {HTMLSelectElement} */ (byId("schedule-preset"));
  const options = Object.keys(PRESETS).map((preset) =>
    make("option", { value: preset }, t(`preset.${preset}`)),
  );
  select.replaceChildren(make("option", { value: "" }, t("schedule.preset_none")), ...options);
  select.value = presetOf(state);
}

/** @param {string[]} names @param {Offers} offered */
function showAdd(names, { schedules, runs }) {
  const select = /** @type {HTMLSelectElement} */ (byId("schedule-add"));
  const free = schedules.filter(({ name }) => !names.includes(name));
  const options = free.map(({ name }) =>
    make("option", { value: name }, `${name} · ${aboutText(name)}`),
  );
  const recorded = runs.map((run, trace) =>
    make("option", { value: `run:${trace}` }, t("measured.add", { run })),
  );
  select.replaceChildren(make("option", { value: "" }, t("names.add")), ...recorded, ...options);
  select.disabled = names.length >= MOST_NAMES;
}
