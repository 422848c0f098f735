// What is said of a step under ZeRO: each event, what it sends, and what a rank then holds.

import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { heldAfter, sentAfter, total } from "./sharded.js";

/** @typedef {import("./sharded.js").PlannedStep} PlannedStep */
/** @typedef {import("./sharded.js").StepEvent} StepEvent */

/** Sizes of models are told in powers of 1000, as the verdict tells them. */
const DECIMAL = 1000;

/** Names an event. @param {StepEvent} event */
export function eventName({ what, layer, microbatch }) {
  const name = t(`sharding.what.${what}`);
  if (layer === null) return name;
  return t(microbatch ? "sharding.of_microbatch" : "sharding.of_layer", {
    what: name,
    layer,
    microbatch: microbatch ?? 0,
  });
}

/** Writes what an event sends, "" where it sends nothing. @param {StepEvent} event */
export function movedText({ moved }) {
  if (!moved) return "";
  return t("sharding.moved", {
    collective: moved.collective,
    over: moved.over.join(" × "),
    ranks: moved.ranks,
    size: bytesText(moved.size, DECIMAL),
    sent: bytesText(moved.sent, DECIMAL),
  });
}

/** Writes an event in one line. @param {StepEvent} event */
export function eventLine(event) {
  const moved = movedText(event);
  return t("sharding.line", {
    event: eventName(event) + (moved ? `: ${moved}` : ""),
    held: bytesText(total(event.held), DECIMAL),
  });
}

/**
 * Writes which event was the last, or that none was.
 * @param {PlannedStep} step
 * @param {number} done
 */
export function momentLine(step, done) {
  if (!done) return t("sharding.begin");
  const event = eventName(step.events[done - 1]);
  return t("sharding.event", { number: done, count: step.events.length, event });
}

/**
 * Returns what is told of a moment.
 * @param {PlannedStep} step
 * @param {number} done
 */
export function factsOf(step, done) {
  const held = heldAfter(step, done);
  const bytes = (/** @type {number} */ value) => bytesText(value, DECIMAL);
  return [
    { term: "parameters", value: bytes(held.parameters + held.near) },
    { term: "gathered", value: bytes(held.gathered) },
    { term: "gradients", value: bytes(held.gradients) },
    { term: "optimizer", value: bytes(held.optimizer) },
    { term: "total", value: bytes(total(held)) },
    { term: "sent", value: `${bytes(sentAfter(step, done))} / ${bytes(step.sent)}` },
  ];
}
