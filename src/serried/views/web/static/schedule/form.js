// The form of the Schedule view: sizes, times and the limit; it writes the state.

import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { readMeasured } from "./measured.js";
import { QUESTION_FIELDS, namesOf, presetFields, withName } from "./state.js";

/** @typedef {import("./state.js").ScheduleState} ScheduleState */
/** @typedef {import("./list.js").Fault} Fault */
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
    else if (id === "schedule-add" && value) edit({ names: withName(namesOf(state()), value) });
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
    if (all.some((fault) => fault.field === field)) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }
}
