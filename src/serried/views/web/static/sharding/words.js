// What is said of a step under ZeRO: each event, what it sends, and what a rank then holds.

import { duration } from "../base/clock.js";
import { number, t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { heldAfter, sentAfter, total } from "./sharded.js";

/** @typedef {import("./sharded.js").PlannedStep} PlannedStep */
/** @typedef {import("./sharded.js").StepEvent} StepEvent */

/** Sizes of models are told in powers of 1000, as the verdict tells them. */
const DECIMAL = 1000;
const NS = 1e9;

/** Names an event. @param {StepEvent} event */
function eventName({ what, layer, microbatch }) {
  const name = t(`sharding.what.${what}`);
  if (layer === null) return name;
  return t(microbatch ? "sharding.of_microbatch" : "sharding.of_layer", {
    what: name,
    layer,
    microbatch: microbatch ?? 0,
  });
}

/**
 * Writes what an event sends, "" where it sends nothing.
 * @param {StepEvent} event
 * @param {number | null} [seconds]  what that takes, where a plan says it
 */
export function movedText({ moved }, seconds) {
  if (!moved) return "";
  const told = t("sharding.moved", {
    collective: moved.collective,
    over: moved.over.join(" × "),
    ranks: moved.ranks,
    size: bytesText(moved.size, DECIMAL),
    sent: bytesText(moved.sent, DECIMAL),
  });
  return seconds ? t("sharding.takes", { told, time: duration(seconds * NS) }) : told;
}

/** Writes what the plan says of the step, "" where it was not asked. */
/** @param {import("./sharded.js").Priced | null | undefined} priced */
export function pricedText(priced) {
  if (!priced) return "";
  const { cluster, layers, microbatches, model, step_s: seconds } = priced;
  const parameters = number(priced.parameters);
  const told = { cluster, layers, microbatches, model, parameters };
  return t("sharding.priced_told", { ...told, time: duration(seconds * NS) });
}

/** Writes an event in one line. @param {StepEvent} event @param {number | null} [seconds] */
export function eventLine(event, seconds) {
  const moved = movedText(event, seconds);
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
