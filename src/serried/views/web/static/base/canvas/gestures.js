// Pointer gestures of a canvas: hover, click, drag, wheel; told apart once, for map and timelines.

const CLICK_WITHIN = 4;

/**
 * @typedef {object} Handlers
 * @property {(x: number, y: number) => void} hover
 * @property {() => void} leave
 * @property {(x: number, y: number) => void} click
 * @property {(dx: number, dy: number) => void} drag   pixels since the last call
 * @property {(x: number, y: number, event: WheelEvent) => void} wheel
 * @property {() => void} [double]
 * @property {(x0: number, y0: number, x1: number, y1: number, isDone: boolean) => void} [area]
 *   drawn with Shift held
 */

/**
 * Listens on a surface's canvas.
 * @param {import("./surface.js").Surface} surface
 * @param {Handlers} handlers
 */
export function listen(surface, handlers) {
  const { canvas } = surface;
  /** @type {{x: number, y: number, moved: boolean} | null} */
  let pressed = null;
  /** Where an area begins. @type {{x: number, y: number} | null} */
  let corner = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pressed = { x: event.clientX, y: event.clientY, moved: false };
    corner = event.shiftKey && handlers.area ? surface.point(event) : null;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { x, y } = surface.point(event);
    if (!pressed) return handlers.hover(x, y);
    const dx = event.clientX - pressed.x;
    const dy = event.clientY - pressed.y;
    if (!pressed.moved && Math.hypot(dx, dy) < CLICK_WITHIN) return;
    if (corner) handlers.area?.(corner.x, corner.y, x, y, false);
    else {
      canvas.classList.add("dragging");
      handlers.drag(dx, dy);
    }
    pressed = { x: event.clientX, y: event.clientY, moved: true };
  });
  canvas.addEventListener("pointerup", (event) => {
    const { x, y } = surface.point(event);
    const wasClick = pressed && !pressed.moved;
    if (corner && pressed?.moved) handlers.area?.(corner.x, corner.y, x, y, true);
    pressed = corner = null;
    canvas.classList.remove("dragging");
    if (wasClick) handlers.click(x, y);
  });
  canvas.addEventListener("pointercancel", () => (pressed = corner = null));
  canvas.addEventListener("dblclick", () => handlers.double?.());
  canvas.addEventListener("pointerleave", () => handlers.leave());
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = surface.point(event);
      handlers.wheel(x, y, event);
    },
    { passive: false },
  );
}

/**
 * Returns how much a turn of the wheel zooms; a pinch arrives with Ctrl and small steps.
 * @param {WheelEvent} event
 */
export function wheelZoom(event) {
  const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1);
  return Math.exp(-pixels * (event.ctrlKey && Math.abs(pixels) < 50 ? 0.01 : 0.0016));
}
