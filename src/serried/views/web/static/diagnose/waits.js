// Who waits for whom under a finding, rank by rank, as it comes with the states of ranks.

import { readPayload } from "../base/payload.js";

const CULPRIT = 3;

/** Holds for whom each rank waits. */
export class Waits {
  /** @param {ArrayBuffer} buffer  the states of ranks, as Python sends them */
  constructor(buffer) {
    const { columns } = readPayload(buffer);
    /** Of each rank the first that it waits for, -1 for nobody. */
    this.targets = /** @type {Int32Array} */ (columns.get("target"));
    /** Of each rank whether that is a culprit. */
    this.directly = /** @type {Uint8Array} */ (columns.get("directly"));
    /** Ranks in the order of whom they wait for, and where those of each begin. */
    this.order = new Int32Array(0);
    this.begins = new Int32Array(0);
    /** The ranks that are at fault. @type {number[]} */
    this.culprits = [];
    (columns.get("value") ?? []).forEach((state, rank) => {
      if (state === CULPRIT) this.culprits.push(rank);
    });
    this._sort();
  }

  /** Returns the ranks that wait for another first. @param {number} target */
  waitingFor(target) {
    return this.order.subarray(this.begins[target], this.begins[target + 1]);
  }

  _sort() {
    const { targets } = this;
    this.begins = new Int32Array(targets.length + 1);
    for (const target of targets) if (target >= 0) this.begins[target + 1]++;
    for (let i = 0; i < targets.length; i++) this.begins[i + 1] += this.begins[i];
    this.order = new Int32Array(this.begins[targets.length]);
    const next = this.begins.slice();
    targets.forEach((target, rank) => {
      if (target >= 0) this.order[next[target]++] = rank;
    });
  }
}
