// The layout in view, as the map, the lists and the panels read it: Python's columns, named.

import { integers, readPayload } from "./payload.js";

/**
 * @typedef {object} Kind  One kind of groups in view.
 * @property {string} dim      dp, tp, … or "" for a kind that is no dimension
 * @property {string} kind     the framework's own name
 * @property {string} label    what a mark is called: DP, or the kind's name
 * @property {string} mark     the shape of its mark
 * @property {string} ink      its strong colour on a light page
 * @property {string} ink_on_dark
 * @property {Int32Array} members  group g is members[bounds[g] .. bounds[g + 1]]
 * @property {Int32Array} bounds
 * @property {Int32Array} group    the first group of each rank, -1 where it has none
 * @property {boolean} overlaps    whether some rank stands in several groups
 * @property {Int32Array} nodes    over how many nodes each group spreads
 * @property {Uint32Array} colour  0xRRGGBB of each group
 * @property {Order} order         colours from its first group to its last, for small cells
 */
/** @typedef {{light: string[], dark: string[]}} Order  colours of equal steps */
/**
 * @typedef {object} MeshTable  a mesh that holds every rank once
 * @property {string} name
 * @property {Record<string, number>} axes  those above 1, the slowest first
 * @property {{rows: string[], columns: string[], blocks: string[]}} roles  of the map's cube
 */
/** @typedef {{heading: string, paragraphs: string[]}} Section */
/**
 * @typedef {object} Explanation
 * @property {string} title
 * @property {Section[]} sections
 * @property {{title: string, url: string}[]} reading
 */
/** @typedef {{mark: string, ink: string, ink_on_dark: string}} Look */
/**
 * @typedef {object} PageWords  what the page shows whatever the layout (serried.page/1)
 * @property {FrameworkTable[]} frameworks
 * @property {Record<string, Look>} looks  of each dimension
 * @property {{dim: string, text: string}[]} basics  until there is a layout, which has its own
 * @property {number} limit_bytes  of the largest launch file
 * @property {Record<string, Record<string, string[]>>} collectives  the algorithms of each, with
 *   which of the choices each takes
 * @property {Record<string, string[]>} collective_choices
 */
/**
 * @typedef {object} Job
 * @property {string} framework
 * @property {string} title
 * @property {string} version
 * @property {number} world_size
 * @property {Record<string, number>} sizes
 * @property {string} order
 * @property {Record<string, number>} axes
 * @property {string[]} dims
 * @property {string[]} takes    the axes that its framework has under its settings
 * @property {number} num_stages
 * @property {number} gpus_per_node  of the largest node
 * @property {number[]} node_gpus  of each node where they differ, else empty
 * @property {number} gpus_per_rank
 * @property {number} ranks_per_node  of the largest node
 * @property {number} num_nodes
 */
/**
 * @typedef {object} FrameworkTable
 * @property {string} name
 * @property {string} title
 * @property {string} version   the newest
 * @property {string[]} versions  oldest first
 * @property {string} source
 * @property {string[]} dims
 * @property {string[]} sizes
 * @property {Record<string, string>} options
 * @property {string} order
 * @property {string[]} orders
 */
/**
 * @typedef {object} KindTable
 * @property {string} name
 * @property {string} dim
 * @property {string} note
 * @property {string} twin_of
 * @property {number} num_groups
 * @property {number} smallest
 * @property {number} largest
 */

/** Holds the layout in view. */
export class Scene {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const { header, columns } = readPayload(buffer);
    /** @type {Job} */
    this.job = header.job;
    /** @type {KindTable[]} */
    this.allKinds = header.kinds;
    /** @type {Explanation | null} */
    this.explanation = header.explanation;
    /** @type {string} */
    this.command = header.command;
    /** @type {{dim: string, text: string}[]} */
    this.basics = header.basics;
    this.node = integers(columns, "node");
    this.localRank = integers(columns, "local_rank");
    this.stage = integers(columns, "stage");
    this.placeInStage = integers(columns, "place_in_stage");
    const domain = columns.get("domain");
    /** The NVLink domain of each rank where domains are racks of nodes. */
    this.domain = domain instanceof Int32Array ? domain : null;
    /** @type {MeshTable[]} */
    this.meshes = header.meshes;
    /** @type {Order} */
    this.stageOrder = header.stage_order;
    /** @type {Map<string, Int32Array>} */
    this.axes = new Map();
    /** @type {Map<string, Int32Array>} */
    this.places = new Map();
    for (const name of columns.keys()) {
      if (name.startsWith("axis:")) this.axes.set(name.slice(5), integers(columns, name));
      if (name.startsWith("mesh:")) this.places.set(name.slice(5), integers(columns, name));
    }
    /** @type {Kind[]} */
    this.kinds = header.shown.map((/** @type {object} */ shown, /** @type {number} */ i) => ({
      ...shown,
      members: integers(columns, `members:${i}`),
      bounds: integers(columns, `bounds:${i}`),
      group: integers(columns, `group:${i}`),
      nodes: integers(columns, `nodes:${i}`),
      colour: columns.get(`colour:${i}`),
    }));
  }

  get worldSize() {
    return this.job.world_size;
  }

  /**
   * Returns each rank's place along an axis of a mesh.
   * @param {string} mesh
   * @param {string} axis
   */
  along(mesh, axis) {
    return this.places.get(`${mesh}:${axis}`);
  }

  /**
   * Returns the ranks of a group of the `kind`-th kind in view.
   * @param {number} kind
   * @param {number} group
   */
  members(kind, group) {
    const { members, bounds } = this.kinds[kind];
    return members.subarray(bounds[group], bounds[group + 1]);
  }

  /** Returns how many groups the `kind`-th kind has. @param {number} kind */
  numGroups(kind) {
    return this.kinds[kind].bounds.length - 1;
  }

  /** Writes a group as text: "TP 0: [0, 1]". @param {number} kind @param {number} group */
  groupText(kind, group) {
    return `${this.kinds[kind].label} ${group}: [${this.members(kind, group).join(", ")}]`;
  }
}
