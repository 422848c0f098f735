// One colour for every rank: by a figure, by stage, or by the groups of one kind, in their order.

import { rampColour } from "./heat.js";

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {import("./heat.js").Heat} Heat */
/**
 * @typedef {object} Shade
 * @property {string} by          stage, group or figure
 * @property {string} name        of groups their label, else ""
 * @property {number} count       how many stages or groups there are
 * @property {string[]} ramp      their colours, from the first to the last
 * @property {Int32Array} colours  0xRRGGBB of each rank, -1 for none
 * @property {Int32Array | null} groups  of groups that of each rank, -1 for none
 */

/** @type {Shade} */
export const NO_SHADE = {
  by: "stage",
  name: "",
  count: 0,
  ramp: [],
  colours: new Int32Array(0),
  groups: null,
};

/**
 * Returns the colours of a figure.
 * @param {Heat} heat
 * @param {number} worldSize
 * @param {boolean} dark
 * @returns {Shade}
 */
function shadeOfHeat(heat, worldSize, dark) {
  const colours = Int32Array.from({ length: worldSize }, (_, rank) => heat.colour(rank, dark));
  return { by: "figure", name: "", count: 0, ramp: heat.ramp(dark), colours, groups: null };
}

/**
 * Returns the colours that a choice asks for, or those that tell most where it asks for none: the
 * stage where pipelines are in view, else the groups of the first kind.
 * @param {Scene} scene
 * @param {string} choice  "", stage, or group: and the kind's name
 * @param {boolean} dark
 * @returns {Shade}
 */
export function shadeOf(scene, choice, dark) {
  const named = choice.startsWith("group:") ? choice.slice(6) : "";
  const chosen = scene.kinds.find(({ kind, dim }) => named && (dim === named || kind === named));
  const hasStages = scene.job.num_stages > 1;
  const isOfPipelines = scene.kinds.some(({ dim }) => dim === "pp") || !scene.kinds.length;
  if (!chosen && hasStages && (choice === "stage" || isOfPipelines))
    return ordered(scene.stage, scene.job.num_stages, "stage", "", scene.stageOrder, dark);
  const kind = chosen ?? scene.kinds[0];
  if (!kind) return ordered(scene.stage, 1, "stage", "", scene.stageOrder, dark);
  const count = kind.bounds.length - 1;
  return ordered(kind.group, count, "group", kind.label, kind.order, dark);
}

/**
 * @param {Int32Array} numbers  of each rank
 * @param {number} count
 * @param {string} by
 * @param {string} name
 * @param {import("../base/scene.js").Order} order
 * @param {boolean} dark
 * @returns {Shade}
 */
function ordered(numbers, count, by, name, order, dark) {
  const ramp = dark ? order.dark : order.light;
  const table = Array.from({ length: count }, (_, i) =>
    rampColour(ramp, count > 1 ? i / (count - 1) : 0.5),
  );
  const colours = numbers.map((number) => (number < 0 ? -1 : table[number]));
  return { by, name, count, ramp, colours, groups: name ? numbers : null };
}

/** Holds what fills cells until it is to be of another scene, figure or theme. */
export class Shades {
  constructor() {
    /** @type {unknown[]} */
    this.made = [];
    this.shade = NO_SHADE;
  }

  /**
   * Returns what fills the cells of a scene.
   * @param {import("../base/scene.js").Scene} scene
   * @param {import("./heat.js").Heat | null} heat
   * @param {string} by
   * @param {boolean} dark
   */
  of(scene, heat, by, dark) {
    const made = [scene, heat, by, dark];
    if (made.some((each, i) => each !== this.made[i])) {
      this.made = made;
      this.shade = heat ? shadeOfHeat(heat, scene.worldSize, dark) : shadeOf(scene, by, dark);
    }
    return this.shade;
  }

  /** Makes it anew the next time. */
  forget() {
    this.made = [];
  }
}
