// The page on paper: as wide and as high as on the screen, and smaller, so that it fits a sheet.
// Pictures are drawn for the screen, and would be stretched in frames of another shape.

/** A sheet of A4 on its side, within margins of 10 mm, in CSS pixels. */
const SHEET = { width: 1047, height: 718 };

/** Lays the page out for a sheet whenever it is printed. */
export function layOutForPaper() {
  /** What undoes the layout. @type {(() => void)[]} */
  let undone = [];
  addEventListener("beforeprint", () => {
    undone = frames().map(held);
    const { clientWidth, clientHeight, style } = document.documentElement;
    const zoom = Math.min(1, SHEET.width / clientWidth, SHEET.height / clientHeight);
    style.setProperty("--screen-width", `${clientWidth}px`);
    style.setProperty("--screen-height", `${clientHeight}px`);
    style.setProperty("--paper-zoom", String(zoom));
  });
  addEventListener("afterprint", () => {
    for (const undo of undone) undo();
    undone = [];
  });
}

/** Returns the parts of the view that is open, and what holds their pictures. */
function frames() {
  const found = document.querySelectorAll("#centre > section, .frame");
  const all = /** @type {HTMLElement[]} */ ([...found]);
  return all.filter((each) => each.offsetHeight > 0);
}

/** Keeps a part as high as it is; returns what lets it go. @param {HTMLElement} part */
function held(part) {
  const { flex, height } = part.style;
  Object.assign(part.style, { flex: "none", height: `${part.offsetHeight}px` });
  return () => {
    Object.assign(part.style, { flex, height });
  };
}
