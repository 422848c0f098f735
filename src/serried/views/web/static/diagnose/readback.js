// What a script reads of the Diagnose panel (desk/readback.js publishes it).
//
//   diagnosis()  null while it is closed; else {name, verdict, states, arrows, named}: sentences
//                that stand in it, the state of each rank on the map, null where the map shows
//                another job, how many waits are drawn there, and how many causes are named

import { byId } from "../base/dom.js";

/** @param {import("./desk.js").DiagnoseDesk<any>} desk */
export function diagnoseReadback(desk) {
  return {
    diagnosis: () =>
      desk.shown
        ? {
            name: desk.shown.name,
            verdict: byId("diagnose-verdict").textContent,
            arrows: desk.arrows.drawn,
            named: desk.arrows.named,
            states: desk.heat ? [...desk.heat.values] : null,
          }
        : null,
  };
}
