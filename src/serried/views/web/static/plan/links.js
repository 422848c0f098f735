// The links that a planned step's traffic takes on the map, drawn together where cells are small:
//
//   a cell of 30 pixels and more   within a box from rank to rank, between boxes as one link
//   smaller                        within a box a bar of all, between boxes as one link
//   boxes below 56 pixels          blocks of boxes in place of boxes
//   a rank is pinned               only links of its groups
//   more than 16 boxes             only links of the groups of the first node: all run alike
//
// All figures are the server's; what links drawn as one carry is added up.

import { integers, readPayload } from "../base/payload.js";

/**
 * @typedef {object} Flow  what groups of one kind send in a step
 * @property {string} kind
 * @property {string} dim     of its groups, "" for none
 * @property {string} groups  what the layout calls them
 * @property {string[]} collectives
 * @property {number} ranks
 * @property {"ring" | "chain" | "all"} pattern
 * @property {number} link_bytes        of one link
 * @property {number} link_bytes_per_s  on average over the step
 * @property {number} within_bytes      of all ranks, inside nodes
 * @property {number} across_bytes      of all ranks, between nodes
 * @property {string} ink
 * @property {string} ink_on_dark
 * @property {Int32Array} hop  of each rank, how far from its number that is which it sends to
 */
/**
 * @typedef {object} Link  traffic between two spots, or within one where both are the same
 * @property {number} from
 * @property {number} to
 * @property {number} flow
 * @property {boolean} across  whether it leaves its node
 * @property {number} bytes    of a step, both ways
 */
/** @typedef {(rank: number) => number} SpotOf */

/** Holds the flows of a planned step. */
export class Flows {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    /** Null where no plan says how much a link carries. @type {number | null} */
    this.stepSeconds = header.step_s;
    /** @type {string[]} */
    this.leftOut = header.left_out;
    /** @type {Flow[]} */
    this.all = header.flows.map((/** @type {Flow} */ flow, /** @type {number} */ number) => ({
      ...flow,
      hop: integers(columns, `hop:${number}`),
    }));
  }
}

/**
 * Returns links as wide as one another, for which nobody knows how much they carry.
 * @param {Link[]} links
 */
export function evened(links) {
  return links.map((link) => ({ ...link, bytes: 1 }));
}

/**
 * Returns the links between spots, the widest last; what stays in a spot is a link to itself.
 * @param {Flow[]} flows
 * @param {SpotOf} spotOf
 * @param {SpotOf} nodeOf
 * @param {number[] | null} [of]  ranks whose groups are meant; null for all
 * @returns {Link[]}
 */
export function linksBetween(flows, spotOf, nodeOf, of = null) {
  /** @type {Map<string, Link>} */
  const found = new Map();
  const add = (/** @type {Omit<Link, "from" | "to">} */ part, one = 0, other = 0) => {
    const [from, to] = one < other ? [one, other] : [other, one];
    const key = `${from} ${to} ${part.flow} ${part.across}`;
    const link = found.get(key);
    if (link) link.bytes += part.bytes;
    else found.set(key, { from, to, ...part });
  };
  flows.forEach(({ hop, link_bytes: bytes, pattern }, flow) => {
    const senders = of ? groupMates(hop, of) : hop.keys();
    if (pattern === "all") {
      for (const members of groupsOf(hop, senders))
        addPairs(members, { flow, bytes }, spotOf, nodeOf, add);
      return;
    }
    for (const rank of senders) {
      if (!hop[rank]) continue;
      const next = rank + hop[rank];
      add({ flow, bytes, across: nodeOf(rank) !== nodeOf(next) }, spotOf(rank), spotOf(next));
    }
  });
  return [...found.values()].sort((one, other) => one.bytes - other.bytes);
}

/**
 * Returns the ranks of the groups that some ranks are in.
 * @param {Int32Array} hop
 * @param {number[]} of
 */
function groupMates(hop, of) {
  const before = new Int32Array(hop.length).fill(-1);
  hop.forEach((by, rank) => {
    if (by) before[rank + by] = rank;
  });
  /** @type {Set<number>} */
  const found = new Set();
  for (const rank of of) {
    let first = rank;
    while (before[first] >= 0 && before[first] !== rank) first = before[first];
    for (let mate = first; !found.has(mate); mate += hop[mate]) found.add(mate);
  }
  return found;
}

/**
 * Adds what each rank of a group sends to each other, counted by spot.
 * @param {number[]} members
 * @param {{flow: number, bytes: number}} of
 * @param {SpotOf} spotOf
 * @param {SpotOf} nodeOf
 * @param {(part: Omit<Link, "from" | "to">, one: number, other: number) => void} add
 */
function addPairs(members, { flow, bytes }, spotOf, nodeOf, add) {
  /** @type {Map<string, {spot: number, node: number, count: number}>} */
  const counts = new Map();
  for (const rank of members) {
    const [spot, node] = [spotOf(rank), nodeOf(rank)];
    const known = counts.get(`${spot} ${node}`);
    if (known) known.count++;
    else counts.set(`${spot} ${node}`, { spot, node, count: 1 });
  }
  const places = [...counts.values()];
  places.forEach((one, i) => {
    const inside = bytes * one.count * (one.count - 1);
    if (inside) add({ flow, bytes: inside, across: false }, one.spot, one.spot);
    for (const other of places.slice(i + 1)) {
      const sent = 2 * bytes * one.count * other.count;
      add({ flow, bytes: sent, across: one.node !== other.node }, one.spot, other.spot);
    }
  });
}

/**
 * Returns the ranks of each group, found by going round it.
 * @param {Int32Array} hop
 * @param {Iterable<number>} ranks
 */
function groupsOf(hop, ranks) {
  const seen = new Uint8Array(hop.length);
  /** @type {number[][]} */
  const groups = [];
  for (const first of ranks) {
    if (seen[first] || !hop[first]) continue;
    const members = [];
    for (let rank = first; !seen[rank]; rank += hop[rank]) {
      seen[rank] = 1;
      members.push(rank);
    }
    groups.push(members);
  }
  return groups;
}

/**
 * Returns the links from rank to rank that stay within a box.
 * @param {Flow[]} flows
 * @param {SpotOf} boxOf
 * @param {SpotOf} nodeOf
 * @param {(rank: number) => boolean} isSeen
 * @param {number[] | null} [of]  ranks whose groups are meant; null for all
 * @returns {Link[]}
 */
export function linksWithin(flows, boxOf, nodeOf, isSeen, of = null) {
  /** @type {Link[]} */
  const found = [];
  flows.forEach(({ hop, link_bytes: bytes, pattern, ranks: count }, flow) => {
    // What goes from each to each is drawn round the group, by all that a rank sends.
    const sent = pattern === "all" ? bytes * (count - 1) : bytes;
    for (const from of of ? groupMates(hop, of) : hop.keys()) {
      if (!isSeen(from)) continue;
      const to = from + hop[from];
      if (to === from || boxOf(from) !== boxOf(to)) continue;
      // Two ranks are each other's next: one link, both ways.
      const isPair = to + hop[to] === from;
      if (isPair && to < from) continue;
      const across = nodeOf(from) !== nodeOf(to);
      found.push({ from, to, flow, across, bytes: isPair ? 2 * sent : sent });
    }
  });
  return found;
}

export const WIDEST = 10;
const NARROWEST = 1.25;

/**
 * Returns the width of a link in pixels: its square is in proportion to the bytes.
 * @param {number} bytes
 * @param {number} most    bytes of the widest
 * @param {number} widest  its pixels
 */
export function widthOf(bytes, most, widest) {
  return Math.max(NARROWEST, widest * Math.sqrt(bytes / most));
}

/**
 * Returns amounts whose widths stand for the scale: all, a quarter and a sixteenth of the most.
 * @param {number} most
 * @param {number} widest
 */
export function scaleOf(most, widest) {
  const shares = [1, 1 / 4, 1 / 16];
  return shares.map((share) => ({ bytes: most * share, width: widthOf(share, 1, widest) }));
}
