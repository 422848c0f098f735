// The names of steps on the axis of the timeline: which of them have room, and where each stands.

/**
 * @typedef {object} Stretch  a step in pixels
 * @property {number} start
 * @property {number} end
 * @property {number} step
 */

/**
 * Returns the names of the steps in view and where each begins: a step is named in full where
 * there is room, else by its number, and where not even that has room as many are named as have,
 * evenly spread. One that begins before the view is named where it has room before the next, and
 * wherever it fills the view.
 * @param {Stretch[]} steps  in the order in which they begin
 * @param {{left: number, right: number, name: (step: number) => string,
 *   wide: (text: string) => number}} view  in pixels
 */
export function stepLabels(steps, { left: first, right: last, name, wide }) {
  const inView = steps
    .filter(({ start, end }) => Math.min(last, end) > Math.max(first, start))
    .map(({ start, end, step }) => ({ left: Math.max(first, start), end, step, start }))
    // One rank may still end a step while another begins the next.
    .map((each, i, all) => ({
      ...each,
      until: Math.min(last, each.end, all[i + 1]?.left ?? last),
    }));
  const isCut = (/** @type {{start: number}} */ { start }) => start < first;
  const named = inView.filter(
    (each, i) =>
      !isCut(each) || i === inView.length - 1 || wide(String(each.step)) <= each.until - each.left,
  );
  const whole = named.filter((each) => !isCut(each));
  const room = Math.min(...whole.map(({ left }, i) => (whole[i + 1]?.left ?? Infinity) - left));
  const widest = Math.max(0, ...whole.map(({ step }) => wide(String(step))));
  const stride = whole.length < 2 ? 1 : strideFor(widest / Math.max(room, 1e-6));
  return [...named.filter(isCut), ...whole.filter((_, i) => i % stride === 0)].map(
    ({ left, until, step }) => {
      const isWhole = stride === 1 && wide(name(step)) <= until - left;
      const text = isWhole || named.length === 1 ? name(step) : String(step);
      return { text, x: Math.min(left + 4, last - wide(text) + 4) };
    },
  );
}

/** Returns the least of 1, 2, 5, 10, 20 … that is not below a number. @param {number} least */
function strideFor(least) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, least))));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least) ?? 10 * power;
}
