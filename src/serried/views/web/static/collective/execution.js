// One collective by one algorithm as Python executed it (views/web/collective): its steps, what
// they send, what every rank holds after each, and when. Nothing of it is worked out here.

import { integers, readPayload } from "../base/payload.js";

/**
 * @typedef {object} Place  where ranks are drawn
 * @property {number} rank   the rank; -1 for several, or for the switch of a node
 * @property {number} ranks  how many there are; 0 for a switch
 * @property {number} node   the first node
 * @property {number} nodes
 */
/**
 * @typedef {object} Link  all moves of a step from one place to another
 * @property {number} source
 * @property {number} target
 * @property {number[]} blocks   the blocks; empty where places stand for several ranks
 * @property {number} count      how many blocks
 * @property {number} moves      how many moves
 * @property {boolean} reduces   whether the receiver adds them to its own
 * @property {boolean} across    whether it leaves the node
 */
/**
 * @typedef {{model: string, cluster: string, uses: {collective: string, bytes: number,
 *   times: number, step_s: number}[]}} Planned  times is how often in a step, step_s all of them
 */
/**
 * @typedef {object} Header
 * @property {string} name
 * @property {string} algorithm
 * @property {string} about
 * @property {string} formula
 * @property {string} source
 * @property {import("../base/scene.js").Explanation} explanation
 * @property {string} command  that prints the same in a terminal
 * @property {number} size_bytes  of the buffer
 * @property {Planned | null} planned  what the plan of the job runs over the group, where asked for
 * @property {number} bytes
 * @property {number} block_bytes
 * @property {number} num_blocks
 * @property {number} num_ranks
 * @property {number} num_nodes
 * @property {boolean} is_grouped
 * @property {number} launch_time  seconds before the first step
 * @property {number[]} owner  of each block, by position
 * @property {Place[]} places
 */

/** Steps between the states that are kept. */
const KEPT_EVERY = 16;

/** Holds an execution, and replays it. */
export class Execution {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    this.header = /** @type {Header} */ (header);
    this.columns = columns;
    this.shape = integers(columns, "shape");
    this.bounds = integers(columns, "bounds");
    const { num_blocks: blocks, places, is_grouped: isGrouped } = this.header;
    this.numBlocks = blocks;
    this.columnsOfRanks = places.filter(({ ranks }) => ranks > 0).length;
    /** Whether any move goes to the switch of a node, or comes from it. */
    this.hasSwitches = [...integers(columns, "target"), ...integers(columns, "source")].some(
      (place) => place >= this.columnsOfRanks,
    );
    this.seconds = this._doubles("seconds");
    this.stepBytes = this._doubles("step_bytes");
    this.sentBytes = this._doubles("sent_bytes");
    /** When each step begins, and the end of the last. */
    this.starts = new Float64Array(this.seconds.length + 1);
    this.starts[0] = this.header.launch_time;
    this.seconds.forEach((time, i) => (this.starts[i + 1] = this.starts[i] + time));
    /** Pairs that each rank computes in each step, the rank fastest; empty where none computes. */
    this.pairs = this._doubles("pairs") ?? new Float64Array(0);
    /** How many it has computed before each step, and in all. */
    this.pairsBefore = summed(this.pairs, this.columnsOfRanks);
    /** Chunks that the sequence is cut into, where it is told which of them meet. */
    this.numChunks = columns.get("meets")
      ? integers(columns, "query").reduce((most, chunk) => Math.max(most, chunk + 1), 0)
      : 0;
    /** How many ranks' data make a block whole. */
    this.whole = isGrouped ? [] : wholes(this._counts("asked"), blocks);
    /** @type {Map<number, Uint16Array>} */
    this.kept = new Map(isGrouped ? [] : [[0, this._counts("before")]]);
    /** @type {Map<number, Link[]>} */
    this.linked = new Map();
  }

  get numSteps() {
    return this.seconds.length;
  }

  get total() {
    return this.starts[this.numSteps];
  }

  /** Whether ranks compute, as in attention. */
  get hasWork() {
    return this.pairs.length > 0;
  }

  /** Returns the pairs that each rank computes in a step. @param {number} step */
  pairsIn(step) {
    return this.pairs.subarray(step * this.columnsOfRanks, (step + 1) * this.columnsOfRanks);
  }

  /** Returns how many each rank has computed when so many steps are done. @param {number} steps */
  pairsAfter(steps) {
    return this.pairsBefore.subarray(
      steps * this.columnsOfRanks,
      (steps + 1) * this.columnsOfRanks,
    );
  }

  /**
   * Returns the chunks of queries and of keys that meet in a step.
   * @param {number} step
   * @returns {{query: number, key: number, half: boolean}[]}
   */
  meetings(step) {
    const column = (/** @type {string} */ name) => integers(this.columns, name);
    const [meets, query, key] = [column("meets"), column("query"), column("key")];
    const half = this._bytes("half");
    return Array.from({ length: meets[step + 1] - meets[step] }, (_, i) => {
      const row = meets[step] + i;
      return { query: query[row], key: key[row], half: Boolean(half[row]) };
    });
  }

  /** Returns the moves of a step, from place to place. @param {number} step */
  links(step) {
    const shape = this.shape[step];
    const found = this.linked.get(shape) ?? this._links(shape);
    this.linked.set(shape, found);
    return found;
  }

  /**
   * Returns how many ranks' data each place holds of each block once `steps` are done: the block
   * counts fastest. Empty where places stand for several ranks.
   * @param {number} steps
   */
  held(steps) {
    const known = this.kept.get(steps);
    if (known || this.header.is_grouped) return known ?? new Uint16Array(0);
    const from = Math.max(...[...this.kept.keys()].filter((step) => step < steps));
    let counts = Uint16Array.from(/** @type {Uint16Array} */ (this.kept.get(from)));
    for (let step = from; step < steps; step++) {
      this._take(step, counts);
      if ((step + 1) % KEPT_EVERY) continue;
      this.kept.set(step + 1, counts);
      counts = Uint16Array.from(counts);
    }
    return counts;
  }

  /** Returns the steps done at a time, with the share of the next. @param {number} time */
  stepAt(time) {
    if (time >= this.total) return this.numSteps;
    let [low, high] = [0, this.numSteps];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= time) low = middle;
      else high = middle;
    }
    const share = (time - this.starts[low]) / (this.seconds[low] || 1);
    return low + Math.min(1, Math.max(0, share));
  }

  /** Returns the time at which so many steps are done. @param {number} steps */
  timeAt(steps) {
    const done = Math.min(this.numSteps, Math.floor(steps));
    return this.starts[done] + (steps - done) * (this.seconds[done] ?? 0);
  }

  /** @param {number} step @param {Uint16Array} counts */
  _take(step, counts) {
    const { bounds, shape, numBlocks } = this;
    const [target, block] = [integers(this.columns, "target"), integers(this.columns, "block")];
    const held = this._counts("held");
    for (let row = bounds[shape[step]]; row < bounds[shape[step] + 1]; row++)
      counts[target[row] * numBlocks + block[row]] = held[row];
  }

  /** @param {number} shape */
  _links(shape) {
    const column = (/** @type {string} */ name) => integers(this.columns, name);
    const [source, target, block] = [column("source"), column("target"), column("block")];
    const [blocks, moves] = [column("blocks"), column("moves")];
    const [reduces, across] = [this._bytes("reduces"), this._bytes("across")];
    /** @type {Map<string, Link>} */
    const found = new Map();
    for (let row = this.bounds[shape]; row < this.bounds[shape + 1]; row++) {
      const way = `${source[row]} ${target[row]} ${reduces[row]}`;
      const link = found.get(way) ?? {
        source: source[row],
        target: target[row],
        blocks: [],
        count: 0,
        moves: 0,
        reduces: Boolean(reduces[row]),
        across: Boolean(across[row]),
      };
      if (block[row] >= 0) link.blocks.push(block[row]);
      link.count += blocks[row];
      link.moves += moves[row];
      found.set(way, link);
    }
    return [...found.values()];
  }

  /** @param {string} name */
  _doubles(name) {
    return /** @type {Float64Array} */ (this.columns.get(name));
  }

  /** @param {string} name */
  _counts(name) {
    return /** @type {Uint16Array} */ (this.columns.get(name));
  }

  /** @param {string} name */
  _bytes(name) {
    return /** @type {Uint8Array} */ (this.columns.get(name));
  }
}

/** @param {Uint16Array} asked @param {number} blocks */
function wholes(asked, blocks) {
  /** @type {number[]} */
  const most = new Array(blocks).fill(1);
  asked.forEach((count, i) => (most[i % blocks] = Math.max(most[i % blocks], count)));
  return most;
}

/**
 * Returns what stands before each of many rows, added up, and after the last.
 * @param {Float64Array} counts
 * @param {number} width  of a row
 */
function summed(counts, width) {
  const sums = new Float64Array(counts.length + width);
  counts.forEach((count, i) => (sums[i + width] = sums[i] + count));
  return sums;
}
