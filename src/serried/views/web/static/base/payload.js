// Reads a payload: a JSON header and little-endian columns (views/web/wire/payload.py draws it).

/** @typedef {Int32Array | Uint32Array | Uint16Array | Uint8Array | Float64Array} Column */
/**
 * @typedef {object} Described
 * @property {string} name
 * @property {"u8" | "u16" | "i32" | "u32" | "f64"} type
 * @property {number} length
 * @property {number} offset
 */

export const SCHEMA = "serried.payload/1";
const ARRAYS = {
  u8: Uint8Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  f64: Float64Array,
};

/**
 * Returns the header and the columns by name; columns are views of `buffer`, nothing is copied.
 * @param {ArrayBuffer} buffer
 */
export function readPayload(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (header.schema !== SCHEMA) throw new Error(`payload ${header.schema}, not ${SCHEMA}`);
  /** @type {Map<string, Column>} */
  const columns = new Map();
  for (const { name, type, length: size, offset } of /** @type {Described[]} */ (header.columns)) {
    columns.set(name, new ARRAYS[type](buffer, 4 + length + offset, size));
  }
  return { header, columns };
}

/**
 * Returns the column called `name`, whole numbers of 32 bits.
 * @param {Map<string, Column>} columns
 * @param {string} name
 */
export function integers(columns, name) {
  const column = columns.get(name);
  if (!(column instanceof Int32Array)) throw new Error(`no column ${name} of i32`);
  return column;
}
