// What is painted of the map: what is shown, and where each thing lies.

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {import("./nest.js").Nest} Nest */
/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("../base/theme.js").Theme} Theme */
/**
 * @typedef {object} Canvas  what is drawn on, in pixels of the page
 * @property {HTMLCanvasElement} canvas
 * @property {number} width
 * @property {number} height
 * @property {number} density
 * @property {number} sharp  the density of what stands still
 * @property {() => CanvasRenderingContext2D} begin
 */
/**
 * @typedef {object} Picture
 * @property {Scene} scene
 * @property {Nest} nest
 * @property {Camera} camera
 * @property {{x: number, y: number, scale: number}} home  the camera's view of all of the map
 * @property {Canvas} surface
 * @property {Theme} theme
 * @property {import("./heat.js").Heat | null} heat
 * @property {import("./shade.js").Shade} shade   what fills a cell that shows one thing
 * @property {boolean} isFilled      whether cells are filled though marks have room
 * @property {boolean} isMoving      whether the next frame follows at once
 * @property {CellPainter | null} pixels  null to draw each cell by itself
 * @property {Names} names
 */
/**
 * @typedef {object} Names
 * @property {(level: string, number: number) => string} item  node 3, stage 2, domain 1
 * @property {(stage: number) => string} stage
 */
/**
 * @typedef {object} CellPainter
 * @property {(picture: Picture, context: CanvasRenderingContext2D) => void} paint
 */

export {};
