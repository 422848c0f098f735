import assert from "node:assert/strict";
import { test } from "node:test";

import {
  framed,
  launchQuestion,
  readFiles,
  textFile,
} from "../../../../src/serried/views/web/static/desk/launch/files.js";

test("files are written as a length, their names and sizes, and their bytes", () => {
  const message = framed([
    textFile("值.sh", "ls"),
    { name: "core", size: 5e7, bytes: new Uint8Array() },
    textFile("b", "é"),
  ]);
  const length = new DataView(message.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(message.subarray(4, 4 + length)));
  assert.deepEqual(head.files, [
    { name: "值.sh", size: 2, sent: 2 },
    { name: "core", size: 5e7, sent: 0 },
    { name: "b", size: 2, sent: 2 },
  ]);
  assert.equal(new TextDecoder().decode(message.subarray(4 + length)), "lsé");
});

test("a file larger than any launch file is named with its size and not read", async () => {
  const files = await readFiles([new File(["12345"], "large"), new File(["123"], "small")], 4);
  assert.deepEqual(
    files.map(({ name, size, bytes }) => [name, size, bytes.length]),
    [
      ["large", 5, 0],
      ["small", 3, 3],
    ],
  );
});

test("answers go before the file: sizes by name, settings as KEY=VALUE", () => {
  const words = new URLSearchParams(
    launchQuestion("zh", { world_size: "64", "set:zero1.fsdp": "a=b&c", "set:k": "v" }),
  );
  assert.deepEqual(
    [...words],
    [
      ["lang", "zh"],
      ["world_size", "64"],
      ["set", "zero1.fsdp=a=b&c"],
      ["set", "k=v"],
    ],
  );
});
