// What a moment of a collective is painted from, and onto.

/** @typedef {"node" | "nodes" | "ranks" | "pairs"} Said */
/** @typedef {(name: Said, values: Record<string, number>) => string} Say */
/**
 * @typedef {object} Scenery
 * @property {CanvasRenderingContext2D} context
 * @property {import("./execution.js").Execution} execution
 * @property {import("./figure.js").Figure} figure
 * @property {import("./hues.js").Hues} hues
 * @property {import("../base/theme.js").Theme} theme
 * @property {number} steps  steps done, with the share of the next
 * @property {Say} say
 */

export {};
