// What belongs to a span: its microbatch on the other ranks, and from whom to whom it was handed.

import { integers, readPayload } from "../../base/payload.js";
import { askPayload } from "../../base/questions.js";

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
 * @param {number} trace
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
 * @param {Record<string, string | number>} words
 * @param {AbortSignal} [signal]
 */
export async function askSpan(tracks, words, signal) {
  const question = new URLSearchParams(
    Object.entries(words).map(([name, value]) => [name, String(value)]),
  );
  const { columns } = readPayload(await askPayload(`trace/span?${question}`, signal));
  tracks.keep(columns);
  return integers(columns, "id")[0] ?? -1;
}
