// The answers that a report keeps in the page itself, so that it opens from disk and asks nobody.
//
//   <script id="kept">   base64 of gzip of:  length of head | head | body | body | …
//   head                 {absent: sentence, answers: [[key, status, bytes], …]}

/**
 * @typedef {{status: number, body: Uint8Array}} Kept
 * @typedef {{absent: string, answers: Map<string, Kept>}} Archive
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
export function keyOf(question) {
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
  for (const [key, status, size] of head.answers) {
    answers.set(key, { status, body: bytes.slice(from, from + size) });
    from += size;
  }
  return { absent: head.absent, answers };
}
