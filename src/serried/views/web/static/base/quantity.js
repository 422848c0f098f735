// Plain quantities as text: times in the schedule's own unit, shares, and round ticks of an axis.

import { roundStep } from "./clock.js";
import { language } from "./i18n.js";

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/** Writes a time: whole numbers as they are, others with six figures. @param {number} value */
export function numberText(value) {
  const lang = language();
  const format =
    formats.get(lang) ??
    new Intl.NumberFormat(lang === "zh" ? "zh-CN" : "en", { maximumFractionDigits: 6 });
  formats.set(lang, format);
  return format.format(Number.isInteger(value) ? value : Number(value.toPrecision(6)));
}

/** Writes a share of one: 27.3%. @param {number} share */
export function percentText(share) {
  return `${(100 * share).toFixed(1)}%`;
}

/**
 * Returns the round numbers in [start, end], about `most` of them and never a part of a millionth.
 * @param {number} start
 * @param {number} end
 * @param {number} most
 */
export function unitTicks(start, end, most) {
  const step = roundStep((end - start) / Math.max(1, most));
  const found = [];
  for (let i = Math.ceil(Math.max(0, start) / step); i * step <= end; i++)
    found.push(Number((i * step).toPrecision(9)));
  return found;
}

const BYTE_UNITS = {
  1000: ["B", "kB", "MB", "GB", "TB", "PB"],
  1024: ["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
};

/**
 * Writes bytes with three figures: 12.5 MiB, or 13.1 MB.
 * @param {number} bytes
 * @param {1000 | 1024} [base]
 */
export function bytesText(bytes, base = 1024) {
  const units = BYTE_UNITS[base];
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit + 1 < units.length) [value, unit] = [value / base, unit + 1];
  const digits = value === Math.round(value) || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}
