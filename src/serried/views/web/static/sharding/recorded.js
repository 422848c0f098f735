// A step under ZeRO as a rank recorded it, below the collectives that were planned for it.
//
//   planned    all-gather 32,832 B   reduce-scatter 13,440 B
//   recorded   all-gather 32,832 B   reduce-scatter 13,432 B    marked where they differ

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { numberText } from "../base/quantity.js";

/** @typedef {{collective: string, ranks: number[], size: number}} Moved  bytes of all its ranks */
/**
 * @typedef {object} Beside
 * @property {Moved | null} planned
 * @property {Moved | null} recorded
 * @property {string | null} difference
 */
/**
 * @typedef {object} RecordedStep  as views/trace/recorded_step.py tells it
 * @property {string} verdict
 * @property {boolean} agrees
 * @property {{rank: number, step: number, collectives: Beside[]}} shown
 */

/** Shows a recorded step, or that there is none. @param {RecordedStep | null} found */
export function showRecorded(found) {
  byId("sharding-recorded").hidden = !found;
  if (!found) return;
  const { collectives, rank, step } = found.shown;
  byId("sharding-recorded-title").textContent = t("sharding.recorded_step", { rank, step });
  byId("sharding-recorded-verdict").textContent = found.verdict;
  const rows = /** @type {const} */ (["planned", "recorded"]).map((which) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, t(`sharding.${which}`)),
      ...collectives.map((each) => cellOf(each[which], each.difference)),
    ),
  );
  byId("sharding-recorded-rows").replaceChildren(...rows);
}

/** @param {Moved | null} moved @param {string | null} difference */
function cellOf(moved, difference) {
  const told = moved ? [moved.collective, make("br"), `${numberText(moved.size)} B`] : ["–"];
  return make("td", difference ? { class: "differs", title: difference } : {}, ...told);
}
