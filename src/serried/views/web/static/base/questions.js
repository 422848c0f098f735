// Questions to the server: relative addresses only, and a user's mistake comes back as its sentence.

import { framed, launchQuestion } from "../desk/launch/files.js";

/** Is an answer that says what was wrong with the question. */
export class Refusal extends Error {
  /** @param {string} sentence @param {string} field the word of the question it is about, if known */
  constructor(sentence, field) {
    super(sentence);
    this.field = field;
  }
}

/** @param {string} path @param {RequestInit} [request] */
async function ask(path, request) {
  const answer = await fetch(`api/${path}`, request);
  if (answer.ok) return answer;
  if (answer.status !== 400) throw new Error(`${answer.status} ${answer.statusText}`);
  const { error, field } = await answer.json();
  throw new Refusal(error, field ?? "");
}

/** Asks for a payload. @param {string} path @param {AbortSignal} [signal] */
export async function askPayload(path, signal) {
  return (await ask(path, { signal })).arrayBuffer();
}

/** Asks for a document. @param {string} path @param {AbortSignal} [signal] */
export async function askDocument(path, signal) {
  return (await ask(path, { signal })).json();
}

/** Asks what launch files say. @param {string} lang @param {import("../desk/launch/files.js").Answers} answers @param {import("../desk/launch/files.js").LaunchFile[]} files @returns {Promise<import("../desk/launch/reading.js").Told>} */
export async function askLaunch(lang, answers, files) {
  const headers = { "Content-Type": "application/octet-stream" };
  const body = /** @type {Uint8Array<ArrayBuffer>} */ (framed(files));
  return (await ask(`launch?${launchQuestion(lang, answers)}`, { method: "POST", headers, body })).json();
}
