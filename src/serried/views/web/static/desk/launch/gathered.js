// Files on their way to the server: gathered from a drop or a choice, with their paths below it;
// their beginnings as one message, and all of them as another, which the browser reads as it sends.

import { framed } from "./files.js";

/** @typedef {{path: string, file: File}} Gathered  a file, and its path below what was dropped */

const SAMPLE_BYTES = 1 << 20;
const SAMPLES_BYTES = 14 << 20;
const LEAST_BYTES = 4096;
/** Files of a drop that are looked at; the server says what it takes. */
const MOST_FILES = 5000;

/** Returns files that were chosen. @param {File[]} files @returns {Gathered[]} */
export function chosen(files) {
  return files.map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/**
 * Returns the files of a drop, those in dropped folders with their paths. To be called while the
 * drop is told.
 * @param {DataTransfer} transfer
 * @returns {Promise<Gathered[]>}
 */
export async function dropped(transfer) {
  const items = [...transfer.items].filter(({ kind }) => kind === "file");
  const found = items.map((item) => {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry?.isDirectory) return below(/** @type {FileSystemDirectoryEntry} */ (entry));
    return file ? [{ path: file.name, file }] : [];
  });
  return (await Promise.all(found)).flat();
}

/** @param {FileSystemDirectoryEntry} top @returns {Promise<Gathered[]>} */
async function below(top) {
  /** @type {Gathered[]} */
  const files = [];
  const folders = [top];
  for (let folder = folders.pop(); folder; folder = folders.pop()) {
    for (const entry of await entriesOf(folder)) {
      if (files.length >= MOST_FILES) return files;
      if (entry.isDirectory) folders.push(/** @type {FileSystemDirectoryEntry} */ (entry));
      else {
        /** @type {File} */
        const file = await new Promise((done, fail) =>
          /** @type {FileSystemFileEntry} */ (entry).file(done, fail),
        );
        files.push({ path: entry.fullPath.replace(/^\//, ""), file });
      }
    }
  }
  return files;
}

/** @param {FileSystemDirectoryEntry} folder @returns {Promise<FileSystemEntry[]>} */
async function entriesOf(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const entries = [];
  for (;;) {
    // A browser tells of a hundred at a time.
    const some = await new Promise((/** @type {(found: FileSystemEntry[]) => void} */ done, fail) =>
      reader.readEntries(done, fail),
    );
    if (!some.length) return entries;
    entries.push(...some);
  }
}

/** Returns the beginnings of files as one message. @param {Gathered[]} files */
export async function sampled(files) {
  const each = Math.max(LEAST_BYTES, Math.floor(SAMPLES_BYTES / Math.max(1, files.length)));
  const most = Math.min(SAMPLE_BYTES, each);
  return framed(
    await Promise.all(
      files.map(async ({ path, file }) => ({
        name: path,
        size: file.size,
        bytes: new Uint8Array(await file.slice(0, most).arrayBuffer()),
      })),
    ),
  );
}

/**
 * Returns files as one message, of which nothing is read before it is sent.
 * @param {string} name  what holds them
 * @param {Gathered[]} files
 */
export function message(name, files) {
  const list = files.map(({ path, file }) => ({ name: path, size: file.size }));
  const head = new TextEncoder().encode(JSON.stringify({ name, files: list }));
  const length = new DataView(new ArrayBuffer(4));
  length.setUint32(0, head.length, true);
  return new Blob([length.buffer, head, ...files.map(({ file }) => file)], {
    type: "application/octet-stream",
  });
}

/** Returns what holds files: the folder of all, else the first. @param {Gathered[]} files */
export function nameOf(files) {
  const tops = new Set(files.map(({ path }) => path.split("/")[0]));
  return [...tops][0] ?? "";
}
