// What a script reads of the Plan panel (desk/readback.js publishes it).
//
//   traffic()   {links, most, isEven, isShown}: how many links are on the map, bytes of the widest,
//            whether all are as wide
//   plan()   null while it is closed or has no answer; else {verdict, fits, step_s, totals,
//            command}: whether the job fits, its step, the bytes of each place in the pipeline

/** @param {import("./desk.js").PlanDesk} desk */
export function planReadback(desk) {
  return {
    traffic: () => {
      const { drawn, isEven, isShown } = desk.traffic;
      return { ...drawn, isEven, isShown };
    },
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
