// Questions to the server: relative addresses only, and a user's mistake comes back as its
// sentence. A report keeps the answers itself (kept.js).

import { isReport, keptAnswer } from "./kept.js";
import { watched } from "./slow.js";

/** Questions that the server answers once there is news. */
const PATIENT = /[?&](wait|version)=/;

/** Says what was wrong with a question. */
export class Refusal extends Error {
  /**
   * @param {string} sentence
   * @param {string} field the word of the question it is about, if known
   */
  constructor(sentence, field) {
    super(sentence);
    this.field = field;
  }
}

/**
 * Asks for anything; throws a Refusal where the question was wrong.
 * @param {string} path
 * @param {RequestInit} [request]
 */
export async function ask(path, request) {
  const asked = isReport() ? keptAnswer(path) : fetch(`api/${path}`, request);
  const answer = await (PATIENT.test(path) ? asked : watched(asked));
  if (answer.ok) return answer;
  if (answer.status !== 400) throw new Error(`${answer.status} ${answer.statusText}`);
  const { error, field } = await answer.json();
  throw new Refusal(error, field ?? "");
}

/** Asks for a payload. @param {string} path @param {AbortSignal} [signal] */
export async function askPayload(path, signal) {
  return (await ask(path, { signal })).arrayBuffer();
}

/** Answers that came with others, each for the first who asks. @type {Map<string, unknown>} */
const beside = new Map();

/** Asks for several documents at once; each waits for who asks for it. @param {string[]} paths */
export async function askSeveral(paths) {
  if (isReport()) return;
  const asked = paths.map((path) => `ask=${encodeURIComponent(path)}`).join("&");
  const answers = await (await ask(`several?${asked}`)).json();
  for (const [path, answer] of Object.entries(answers)) beside.set(path, answer);
}

/** Asks for a document. @param {string} path @param {AbortSignal} [signal] */
export async function askDocument(path, signal) {
  const answer = beside.get(path);
  if (!beside.delete(path)) return (await ask(path, { signal })).json();
  return /** @type {any} */ (answer);
}
