// Launch files on their way to the server: gathered from a drop, and written as one message.

/**
 * @typedef {object} LaunchFile
 * @property {string} name
 * @property {number} size
 * @property {Uint8Array} bytes  none of a file that is too large to be one
 */
/**
 * @typedef {Record<string, string>} Answers
 *   what was missing, by name; settings by "set:" and their key
 */

/**
 * Writes files as the server reads them: u32 length, JSON of names and sizes, then all bytes.
 * @param {LaunchFile[]} files
 * @returns {Uint8Array}
 */
export function framed(files) {
  const list = files.map(({ name, size, bytes }) => ({ name, size, sent: bytes.length }));
  const head = new TextEncoder().encode(JSON.stringify({ files: list }));
  const message = new Uint8Array(
    4 + head.length + files.reduce((sum, { bytes }) => sum + bytes.length, 0),
  );
  new DataView(message.buffer).setUint32(0, head.length, true);
  message.set(head, 4);
  let at = 4 + head.length;
  for (const { bytes } of files) {
    message.set(bytes, at);
    at += bytes.length;
  }
  return message;
}

/**
 * Writes the question that goes with files: the language, and answers to what was missing.
 * @param {string} lang
 * @param {Answers} answers
 */
export function launchQuestion(lang, answers) {
  const words = new URLSearchParams({ lang });
  for (const [name, value] of Object.entries(answers)) {
    if (name.startsWith("set:")) words.append("set", `${name.slice(4)}=${value}`);
    else words.set(name, value);
  }
  return words.toString();
}

/**
 * Returns typed or pasted text as a file.
 * @param {string} name
 * @param {string} text
 * @returns {LaunchFile}
 */
export function textFile(name, text) {
  const bytes = new TextEncoder().encode(text);
  return { name, size: bytes.length, bytes };
}

/**
 * Reads files as far as they may be launch files. Rejects when the browser cannot read one.
 * @param {File[]} files
 * @param {number} limit bytes of the largest
 */
export function readFiles(files, limit) {
  const bytesOf = async (/** @type {File} */ file) =>
    file.size > limit ? new Uint8Array() : new Uint8Array(await file.arrayBuffer());
  return Promise.all(
    files.map(async (file) => ({ name: file.name, size: file.size, bytes: await bytesOf(file) })),
  );
}
