// Time as text: durations with their unit, and the ticks of a time axis.

const UNITS = [
  { name: "s", ns: 1e9 },
  { name: "ms", ns: 1e6 },
  { name: "us", ns: 1e3 },
  { name: "ns", ns: 1 },
];

/** Writes a duration with four digits and a unit: 12.35 ms. @param {number} ns */
export function duration(ns) {
  const unit = UNITS.find((each) => Math.abs(ns) >= each.ns) ?? UNITS[3];
  const value = ns / unit.ns;
  const digits = unit.ns === 1 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return `${value.toFixed(digits)} ${unit.name}`;
}

/**
 * Returns the ticks of [start, end]: round times, at most `most` of them, each with its label.
 * @param {number} start
 * @param {number} end
 * @param {number} most
 * @returns {{time: number, label: string}[]}
 */
export function ticks(start, end, most) {
  const step = roundStep((end - start) / Math.max(1, most));
  const unit = UNITS.find((each) => step >= each.ns) ?? UNITS[3];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit.ns) + 1e-9));
  const found = [];
  for (let i = Math.ceil(start / step); i * step <= end; i++) {
    found.push({ time: i * step, label: `${((i * step) / unit.ns).toFixed(digits)} ${unit.name}` });
  }
  return found;
}

/**
 * Returns the smallest 1, 2 or 5 times a power of ten that is at least `step`.
 * @param {number} step
 */
export function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5].find((each) => each * power >= step * 0.999999) ?? 10);
}
