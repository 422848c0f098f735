// What views do before the page is laid out for paper (desk/paper.js).

/** Each draws for paper, and returns what undoes it. @type {(() => () => void)[]} */
export const FOR_PAPER = [];
