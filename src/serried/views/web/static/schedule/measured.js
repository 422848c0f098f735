// Measured steps among the stacked schedules: "run:0:3" is step 3 of the first trace.

import { make } from "../base/dom.js";
import { t } from "../base/i18n.js";

/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {{trace: string, step: string}} Measured */

/**
 * Reads the name of a measured step; null for that of a schedule.
 * @param {string} name
 * @returns {Measured | null}
 */
export function readMeasured(name) {
  const match = /^run:(\d+)(?::(\d+))?$/.exec(name);
  return match && { trace: match[1], step: match[2] ?? "" };
}

/** Writes the name of a measured step. @param {string} trace @param {number | string} step */
export function measuredName(trace, step) {
  return `run:${trace}:${step}`;
}

/** Writes the question for a measured step. @param {Measured} measured @param {string} lang */
export function measuredQuestion({ trace, step }, lang) {
  return `trace/measured?trace=${trace}${step && `&step=${step}`}&lang=${lang}`;
}

/**
 * Says of a measured step what it is: whose it is, and whether its compute was emulated.
 * @param {Simulated} data
 */
export function measuredAbout({ header }) {
  const ranks = (header.ranks ?? []).join(" ");
  return t(header.compute === "emulated" ? "measured.about_emulated" : "measured.about", { ranks });
}

/**
 * Makes the field that chooses the step of a measured block.
 * @param {Measured} measured
 * @param {Simulated | null | undefined} data
 * @param {(name: string) => void} choose
 */
export function stepField({ trace, step }, data, choose) {
  const [min, max] = data?.header.steps ?? [0, Number(step)];
  const field = make("input", {
    type: "number",
    class: "step",
    id: `schedule-step-${trace}`,
    "aria-label": t("measured.step"),
    min,
    max,
  });
  field.value = step;
  field.addEventListener("change", () =>
    choose(measuredName(trace, Math.max(0, Math.round(Number(field.value))))),
  );
  return make("label", { class: "step" }, `${t("measured.step")} `, field);
}
