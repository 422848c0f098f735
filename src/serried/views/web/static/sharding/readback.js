// What a script reads of the ZeRO panel (desk/readback.js publishes it).
//
//   sharding()   null while it is closed; else {verdict, events, done, held}: how many events the
//                step has, how many are over, and the bytes that a rank then holds

import { heldAfter } from "./sharded.js";

/** @param {import("./desk.js").ShardingDesk} desk */
export function shardingReadback(desk) {
  return {
    sharding: () =>
      desk.isOpen && desk.answer
        ? {
            verdict: desk.answer.verdict,
            events: desk.step?.events.length ?? 0,
            done: desk.done,
            held: desk.step ? heldAfter(desk.step, desk.done) : null,
          }
        : null,
  };
}
