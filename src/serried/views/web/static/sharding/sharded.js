// A step under ZeRO as Python planned it (views/web/plan/sharding.py), replayed event by event:
// which layers a rank has gathered whole, and how much of each gradient it holds.

/** @typedef {"parameters" | "gradients" | "optimizer"} StateName */
/** @typedef {{state: StateName, start: number, share: number, weight: number}} Bar */
/** @typedef {{rank: number, bars: Bar[], count: number}} RankBars */
/**
 * @typedef {object} Moved  a collective, and the bytes of its tensor and of what a rank sends
 * @property {string} collective
 * @property {string[]} over
 * @property {number} ranks
 * @property {number} size
 * @property {number} sent
 */
/**
 * @typedef {object} Held  bytes that one rank holds
 * @property {number} parameters  its own part
 * @property {number} gradients
 * @property {number} optimizer
 * @property {number} near        the part that ranks of its node share anew (hpZ)
 * @property {number} gathered    layers that it holds whole for a while
 */
/**
 * @typedef {object} StepEvent
 * @property {"gather" | "forward" | "backward" | "free" | "reduce" | "join" | "step"} what
 * @property {number | null} layer       null for all of them
 * @property {number | null} microbatch
 * @property {Moved | null} moved
 * @property {Held} held                 after it
 */
/**
 * @typedef {object} PlannedStep
 * @property {string} verdict
 * @property {number[]} layers   parameters of each
 * @property {number} sent
 * @property {number} peak       the event after which most is held
 * @property {Held} begin
 * @property {StepEvent[]} events
 */
/**
 * @typedef {object} ShardingAnswer
 * @property {string} verdict
 * @property {{stage: number | null, spelled: string, notes: string[]} | null} sharding
 * @property {{weights: string, ranks: RankBars[]}[]} bars
 * @property {Record<StateName, string>} colours
 * @property {{name: string}[]} precisions
 * @property {PlannedStep | null} step
 * @property {Priced | null} planned
 */
/**
 * @typedef {object} Priced  what the plan of the job says of the step
 * @property {string} model
 * @property {string} cluster
 * @property {number} parameters
 * @property {number} layers
 * @property {number} microbatches
 * @property {string} precision
 * @property {(number | null)[]} event_s  what each event's exchange takes
 * @property {number} step_s              all of them, if nothing hid them
 */
/**
 * @typedef {object} Replayed  of each layer
 * @property {boolean[]} gathered             whether its parameters are there whole
 * @property {("" | "part" | "whole")[]} gradients
 */

/**
 * Returns what a rank has of each layer once `done` events are over.
 * @param {PlannedStep} step
 * @param {boolean} isCut  whether a reduced gradient leaves a part only
 * @param {number} done
 * @returns {Replayed}
 */
export function replay(step, isCut, done) {
  const gathered = step.layers.map(() => false);
  /** @type {Replayed["gradients"]} */
  const gradients = step.layers.map(() => "");
  for (const { what, layer } of step.events.slice(0, done)) {
    if (what === "step") gradients.fill("");
    if (layer === null) continue;
    if (what === "gather") gathered[layer] = true;
    if (what === "free") gathered[layer] = false;
    if (what === "backward") gradients[layer] = "whole";
    if (what === "reduce" && isCut) gradients[layer] = "part";
  }
  return { gathered, gradients };
}

/**
 * Returns what is held once `done` events are over.
 * @param {PlannedStep} step
 * @param {number} done
 */
export function heldAfter(step, done) {
  return done ? step.events[done - 1].held : step.begin;
}

/** Returns all bytes of what is held. @param {Held} held */
export function total({ parameters, gradients, optimizer, near, gathered }) {
  return parameters + gradients + optimizer + near + gathered;
}

/**
 * Returns what a rank has sent once `done` events are over.
 * @param {PlannedStep} step
 * @param {number} done
 */
export function sentAfter(step, done) {
  return step.events.slice(0, done).reduce((sum, { moved }) => sum + (moved?.sent ?? 0), 0);
}
