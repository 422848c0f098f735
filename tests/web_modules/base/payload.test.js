import assert from "node:assert/strict";
import { test } from "node:test";

import {
  SCHEMA,
  integers,
  readPayload,
} from "../../../src/serried/views/web/static/base/payload.js";

/** Packs as views/web/wire/payload.py draws it. */
function pack(header, columns) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil((text.length + 4) / 8) * 8 - 4;
  const bytes = columns.reduce((sum, column) => sum + Math.ceil(column.byteLength / 8) * 8, 0);
  const buffer = new ArrayBuffer(4 + length + bytes);
  const all = new Uint8Array(buffer);
  new DataView(buffer).setUint32(0, length, true);
  all.fill(32, 4, 4 + length).set(text, 4);
  let offset = 4 + length;
  for (const column of columns) {
    all.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), offset);
    offset += Math.ceil(column.byteLength / 8) * 8;
  }
  return buffer;
}

const described = [
  { name: "rank", type: "i32", length: 3, offset: 0 },
  { name: "start", type: "f64", length: 2, offset: 16 },
];
const columns = [Int32Array.of(-1, 2, 3), Float64Array.of(0.5, 1e15)];

test("columns come back by name, type and value", () => {
  const read = readPayload(pack({ schema: SCHEMA, columns: described, 名: "值" }, columns));
  assert.equal(read.header["名"], "值");
  assert.deepEqual([...integers(read.columns, "rank")], [-1, 2, 3]);
  assert.deepEqual([...read.columns.get("start")], [0.5, 1e15]);
});

test("columns are views: nothing is copied", () => {
  const buffer = pack({ schema: SCHEMA, columns: described }, columns);
  assert.equal(readPayload(buffer).columns.get("rank").buffer, buffer);
});

test("a payload of another version is refused", () => {
  assert.throws(
    () => readPayload(pack({ schema: "serried.payload/2", columns: [] }, [])),
    /payload\/2/,
  );
});

test("a column that is missing or of another type is refused by name", () => {
  const read = readPayload(pack({ schema: SCHEMA, columns: described }, columns));
  assert.throws(() => integers(read.columns, "start"), /start/);
  assert.throws(() => integers(read.columns, "node"), /node/);
});
