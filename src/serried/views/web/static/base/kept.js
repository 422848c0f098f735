// The answers that a report keeps in the page itself, so that it opens from disk and asks nobody.
//
//   <script id="kept">   base64 of gzip of:  length of head | head | body | body | …
//   head                 {absent: sentence, answers: [[key, status, bytes, places], …]}
//   places               of columns that hold differences: see restore

/**
 * @typedef {{status: number, body: Uint8Array}} Kept
 * @typedef {{absent: string, answers: Map<string, Kept>}} Archive
 * @typedef {Uint16Array | Int32Array | Float64Array} Column
 * @typedef {[type: "u16" | "i32" | "f64", at: number, length: number, ranksAt: number]} Place
 *   ranksAt: where the ranks begin that each number is less; -1: each is less the one before it;
 *   -2: each is less its own place
 */

/** @type {Promise<Archive> | null} */
let reading = null;

/** Returns the element that holds the answers, null where a server answers. */
function holder() {
  return document.getElementById("kept");
}

/** Tells whether this page is a report. */
export function isReport() {
  return holder() !== null;
}

/** Opens a report with the state that it was made for, unless its address holds one. */
export function startReport() {
  const start = holder()?.dataset.start;
  if (start && !location.search) history.replaceState(null, "", `?${start}`);
}

/**
 * Returns what a question is found by: without its language, its words in order.
 * @param {string} question
 */
function keyOf(question) {
  const [name, words = ""] = question.split("?");
  const pairs = [...new URLSearchParams(words)]
    .filter(([word, value]) => word !== "lang" && value)
    .map((pair) => pair.map(encodeURIComponent).join("="));
  return `${name}?${pairs.sort().join("&")}`;
}

/** Returns the answer that the report keeps; a refusal where it keeps none. @param {string} path */
export async function keptAnswer(path) {
  reading ??= read(holder()?.textContent ?? "");
  const { absent, answers } = await reading;
  const found = answers.get(keyOf(path));
  if (!found) return new Response(JSON.stringify({ error: absent }), { status: 400 });
  return new Response(/** @type {BodyInit} */ (found.body), { status: found.status });
}

/** @param {string} text @returns {Promise<Archive>} */
async function read(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  /** @type {Map<string, Kept>} */
  const answers = new Map();
  let from = 4 + length;
  for (const [key, status, size, places] of head.answers) {
    const body = bytes.slice(from, from + size);
    restore(body.buffer, places);
    answers.set(key, { status, body });
    from += size;
  }
  return { absent: head.absent, answers };
}

/** Ranks are whole numbers up to this one; what lies below 0 stands for none. */
const RANKS_MOST = 2 ** 30 - 1;
const BEFORE = -1;
const PLACES = -2;
const ARRAYS = { u16: Uint16Array, i32: Int32Array, f64: Float64Array };

/**
 * Brings columns of an answer back in place, in the order in which they were written.
 * @param {ArrayBuffer} body
 * @param {readonly Place[]} places
 */
export function restore(body, places) {
  for (const [type, at, length, ranksAt] of places) {
    const column = new ARRAYS[type](body, at, length);
    if (ranksAt === BEFORE) sumUp(column);
    else if (ranksAt === PLACES) addTo(column, (i) => i);
    else {
      const ranks = new Int32Array(body, ranksAt, length);
      addTo(column, (i) => ranks[i]);
    }
  }
}

/** @param {Column} column */
function sumUp(column) {
  for (let i = 1; i < column.length; i++) column[i] += column[i - 1];
}

/** What is below 0 stands for none, and stays. */
/** @param {Column} column @param {(i: number) => number} base */
function addTo(column, base) {
  for (let i = 0; i < column.length; i++)
    if (column[i] >= 0) column[i] = (column[i] + base(i)) & RANKS_MOST;
}
