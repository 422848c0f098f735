// What stands around the stacked schedules: the form, the list, the heads, the panels at the side.

import { byId } from "../base/dom.js";
import { listenToScheduleForm, showFaults, showList, showScheduleForm } from "./form.js";
import { placeHeads, showHeads } from "./head.js";
import { showCauses, showKinds, showNotes, showSpot } from "./side.js";
import { commandText } from "./words.js";

export { placeHeads, showSpot };

/** @typedef {import("./answers.js").Answers} Answers */
/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {import("./state.js").AskedState} AskedState */
/**
 * @typedef {object} Typed  whom to tell of what is typed and chosen
 * @property {() => AskedState} state
 * @property {import("./form.js").Edit} edit
 * @property {(name: string) => void} addRun  a step of a run is to be added
 * @property {() => void} left                a field has been left
 */

/** Listens to the form. @param {Typed} typed */
export function listenToPanels({ state, edit, addRun, left }) {
  listenToScheduleForm(state, edit, addRun);
  byId("schedule-form").addEventListener("focusout", left);
}

/**
 * Shows a state in the form, and which schedules of it could not be.
 * @param {Answers} answers
 * @param {AskedState} state
 * @param {(name: string) => void} change
 */
export function showParameters(answers, state, change) {
  const { faults, offers, runs } = answers;
  if (!offers) return;
  showScheduleForm(state);
  const { schedules } = offers;
  showList(state, { schedules, runs }, faults, (name) => answers.of(name), change);
  showFaults(faults.values());
}

/**
 * Shows what is known of the schedules in view.
 * @param {Answers} answers
 * @param {string[]} names
 * @param {(Simulated | null)[]} blocks
 */
export function showAll({ faults, offers, runs }, names, blocks) {
  const shown = blocks.filter((data) => data !== null);
  const used = new Set(shown.flatMap((data) => data.kinds.map(({ number }) => number)));
  showHeads(names, blocks, faults, runs);
  showKinds(
    (offers?.kinds ?? []).filter(({ number }) => used.has(number)),
    shown.some(({ header }) => header.stages_per_rank > 1),
    shown.some((data) => data.hasPairs),
  );
  showCauses(blocks);
  showNotes();
  byId("schedule-command").textContent = commandText(blocks);
}
