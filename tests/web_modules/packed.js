// Packs a payload as views/web/wire/payload.py draws it, for tests that read one.

const CODES = new Map([
  [Uint8Array, "u8"],
  [Uint16Array, "u16"],
  [Int32Array, "i32"],
  [Uint32Array, "u32"],
  [Float64Array, "f64"],
]);
const padded = (size) => Math.ceil(size / 8) * 8;

/** Returns the message of a header and its columns by name. */
export function packed(header, columns) {
  let offset = 0;
  const described = Object.entries(columns).map(([name, column]) => {
    const each = { name, type: CODES.get(column.constructor), length: column.length, offset };
    offset += padded(column.byteLength);
    return each;
  });
  const text = new TextEncoder().encode(JSON.stringify({ ...header, columns: described }));
  const length = padded(text.length + 4) - 4;
  const buffer = new ArrayBuffer(4 + length + offset);
  const all = new Uint8Array(buffer);
  new DataView(buffer).setUint32(0, length, true);
  all.fill(32, 4, 4 + length).set(text, 4);
  Object.values(columns).forEach((column, i) => {
    all.set(
      new Uint8Array(column.buffer, column.byteOffset, column.byteLength),
      4 + length + described[i].offset,
    );
  });
  return buffer;
}
