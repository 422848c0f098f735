// The shapes of what a rank has to do with a hang, which a map draws and its key explains.

/** @typedef {{mark: string, isFull: boolean}} StateMark  isFull: filled, else its outline alone */

/** The shape of each state, from what is not in it to the cause. @type {StateMark[]} */
export const MARK_OF_STATE = [
  { mark: "square", isFull: false },
  { mark: "circle", isFull: false },
  { mark: "circle", isFull: true },
  { mark: "star", isFull: true },
];
