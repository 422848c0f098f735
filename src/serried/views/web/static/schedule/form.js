// The form of the Schedule view: sizes, times and the limit, and the list of schedules, which stand
// one under another; it writes the state.

import { byId, make, unfold } from "../base/dom.js";
import { has, t } from "../base/i18n.js";
import { measuredAbout, readMeasured, stepField } from "./measured.js";
import {
  MOST_NAMES,
  PRESETS,
  QUESTION_FIELDS,
  movedUp,
  namesOf,
  presetFields,
  presetOf,
  withName,
} from "./state.js";
import { blockTitle, refusalTexts } from "./words.js";

/** @typedef {import("./state.js").ScheduleState} ScheduleState */
/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {{sentence: string, field: string}} Fault */
/**
 * @typedef {{name: string, source: string, chunks: number | null, takes_group: boolean}} Offered
 */
/** @typedef {{schedules: Offered[], runs: string[]}} Offers  runs: the names of the traces */
/**
 * @typedef {(change: Partial<ScheduleState>, field?: string) => void} Edit
 *   field is the one that is typed into
 */

/**
 * Listens to the form.
 * @param {() => ScheduleState} state
 * @param {Edit} edit
 * @param {(name: string) => void} addRun
 */
export function listenToScheduleForm(state, edit, addRun) {
  const form = byId("schedule-form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { id, value } = /** @type {HTMLInputElement} */ (event.target);
    if (id === "schedule-preset" && value) edit({ ...presetFields(value), window: "", action: "" });
    else if (id === "schedule-add" && readMeasured(value)) addRun(value);
    else if (id === "schedule-add" && value) edit({ name: withName(namesOf(state()), value) });
    const field = QUESTION_FIELDS.find((each) => `schedule-${each}` === id);
    if (field) edit({ [field]: value.trim() }, field === "of" ? "" : field);
  });
}

/** Shows a state in the form. @param {ScheduleState & {pp: string}} state */
export function showScheduleForm(state) {
  for (const field of QUESTION_FIELDS) {
    const control = /** @type {HTMLInputElement} */ (byId(`schedule-${field}`));
    if (control !== document.activeElement || control.value.trim() !== state[field])
      control.value = state[field];
  }
  byId("schedule-stages").setAttribute(
    "placeholder",
    t("schedule.job_stages", { stages: state.pp }),
  );
}

/**
 * Marks the fields that sentences are about, and says each sentence once, below its field.
 * @param {Iterable<Fault>} faults
 */
export function showFaults(faults) {
  const all = [...faults];
  for (const place of document.querySelectorAll("#schedule-form [data-fields]")) {
    const fields = (place.getAttribute("data-fields") ?? "").split(" ");
    const sentences = all
      .filter(({ field }) => fields.includes(field))
      .map(({ sentence }) => sentence);
    place.textContent = [...new Set(sentences)].join(" · ");
  }
  for (const field of QUESTION_FIELDS) {
    const control = byId(`schedule-${field}`);
    if (all.some((fault) => fault.field === field))
      unfold(control).setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }
}

/**
 * Shows the presets and the schedules of a state, each with what cannot be.
 * @param {ScheduleState} state
 * @param {Offers} offered
 * @param {Map<string, Fault>} faults
 * @param {(name: string) => Simulated | null} known
 * @param {(name: string) => void} change
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
