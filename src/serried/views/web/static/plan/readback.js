// What a script reads of the Plan panel (desk/readback.js publishes it).
//
//   plan()   null while it is closed or has no answer; else {verdict, fits, step_s, totals,
//            command}: whether the job fits, its step, the bytes of each place in the pipeline

/** @param {import("./desk.js").PlanDesk} desk */
export function planReadback(desk) {
  return {
    plan: () =>
      desk.isOpen && desk.answer
        ? {
            verdict: desk.answer.verdict,
            fits: desk.answer.fits,
            step_s: desk.answer.time.step_s,
            totals: desk.answer.memory.map(({ total }) => total),
            command: desk.answer.command,
          }
        : null,
  };
}
