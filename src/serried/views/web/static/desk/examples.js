// Examples to click: states of the page that are worth a look, those of what was served among them.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { EXAMPLE } from "../diagnose/state.js";

/**
 * @typedef {object} Shown  the page, as examples turn it
 * @property {import("./runs.js").Runs} runs
 * @property {Pick<import("../diagnose/desk.js").DiagnoseDesk<import("../map/heat.js").Heat>,
 *   "cases" | "show" | "showFirst" | "shown" | "take">} diagnosis
 * @property {(search: string) => Promise<unknown>} visit
 */

/** States worth a look, each as its address holds it. @type {Record<string, string>} */
export const EXAMPLES = {
  groups: "view=layout&rank=5",
  hang: `view=diagnose&world_size=8&tp=2&pp=2&order=tp-dp-pp&dims=dp,tp,pp&diagnosed=${EXAMPLE}`,
  plan: "view=plan&world_size=64&tp=8&pp=4&model=llama3-70b&cluster=dgx-h100&global_batch=128",
  schedule: "view=schedule&show=strips,path",
  ranks: "view=layout&world_size=16384&tp=8&pp=16&cp=2&dims=dp,tp,pp,cp",
  collective: "view=layout&tp=4&pp=1&dims=dp,tp&collective=all-reduce&collective_of=tp:0",
  zero: "view=layout&tp=1&pp=1&dims=dp&zero=3&sharded=1",
};
/** Runs that are offered one by one. */
const RUNS = 3;

/**
 * Shows the examples, and what was served.
 * @param {Shown} page
 * @param {() => void} openRun
 */
export function showExamples(page, openRun) {
  const { diagnosis, runs } = page;
  const served = runs.offers.slice(0, RUNS).map(({ name }, trace) =>
    example(t("example.run", { name }), () => {
      runs.show(String(trace));
      runs.showOwnLayout();
      openRun();
    }),
  );
  const hung = diagnosis.cases
    .slice(0, RUNS)
    .map(({ name }) => example(t("example.case", { name }), () => diagnosis.show(name)));
  const states = Object.entries(EXAMPLES).map(([key, address]) =>
    example(t(`example.${key}`), () => page.visit(address)),
  );
  byId("examples")
    .querySelector("ul")
    ?.replaceChildren(...served, ...hung, ...states);
}

/** @param {string} title @param {() => void} open */
function example(title, open) {
  return make("li", {}, make("button", { type: "button", click: open }, title));
}
