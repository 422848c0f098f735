// What is asked of the server about a trace beside its windows.
//
//   rows under headings   trace/rows       what belongs to a span        trace/links
//   the span at a point   trace/span       the edges of colours' scale   trace/scale
//   the bubble of a run   trace/bubble

import { integers, readPayload } from "../../base/payload.js";
import { askDocument, askPayload } from "../../base/questions.js";

/** @typedef {import("./tracks.js").Tracks} Tracks */
/**
 * @typedef {object} Links  arrows lead from[i] -> to[i]
 * @property {Int32Array} spans  of its microbatch
 * @property {Int32Array} from
 * @property {Int32Array} to
 */

/**
 * Asks what belongs to a span, and keeps the spans it names.
 * @param {Tracks} tracks
 * @param {string} trace
 * @param {number} span
 * @param {AbortSignal} signal
 * @returns {Promise<Links>}
 */
export async function askLinks(tracks, trace, span, signal) {
  const { columns } = readPayload(
    await askPayload(`trace/links?trace=${trace}&slice=${span}`, signal),
  );
  tracks.keep(columns);
  return {
    spans: integers(columns, "id"),
    from: integers(columns, "arrow:from"),
    to: integers(columns, "arrow:to"),
  };
}

/**
 * Asks for one span: the one `by` places along its rank, or the longest on a track within
 * [time - slack, time + slack], or the nearest one; -1 where there is none.
 * @param {Tracks} tracks
 * @param {string} trace
 * @param {Record<string, string | number>} words
 * @param {AbortSignal} [signal]
 */
export async function askSpan(tracks, trace, words, signal) {
  const question = new URLSearchParams(
    Object.entries(words).map(([name, value]) => [name, String(value)]),
  );
  const { columns } = readPayload(
    await askPayload(`trace/span?trace=${trace}&${question}`, signal),
  );
  tracks.keep(columns);
  return integers(columns, "id")[0] ?? -1;
}

/**
 * Asks which group each row belongs to.
 * @param {string} trace
 * @param {string} by  node, stage or a kind of groups
 * @returns {Promise<import("./rows.js").Grouping>}
 */
export async function askRows(trace, by) {
  const words = new URLSearchParams({ by });
  const { header, columns } = readPayload(await askPayload(`trace/rows?trace=${trace}&${words}`));
  return {
    by,
    label: header.label,
    of: integers(columns, "of"),
    size: integers(columns, "size"),
    busy: /** @type {Float64Array} */ (columns.get("busy")),
    hasRest: header.has_rest,
  };
}

/**
 * Asks from which values on the classes of a measured colour count.
 * @param {string} trace
 * @param {string} of
 * @returns {Promise<number[]>}
 */
export async function askScale(trace, of) {
  const words = new URLSearchParams({ of });
  return (await askDocument(`trace/scale?trace=${trace}&${words}`)).edges;
}

/**
 * Asks for the bubble of a trace.
 * @param {string} trace
 * @returns {Promise<import("./tracks.js").Bubble>}
 */
export function askBubble(trace) {
  return askDocument(`trace/bubble?trace=${trace}`);
}

/**
 * Asks for the periods of a trace without a pipeline.
 * @param {string} trace
 * @returns {Promise<import("./tracks.js").Periods>}
 */
export function askPeriods(trace) {
  return askDocument(`trace/period?trace=${trace}`);
}
