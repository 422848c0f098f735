// How the map is arranged: the levels of a nest of cells for nodes, stages, or a cube of axes.
//
//   node    stages where nodes stand in them whole, domains of NVLink, nodes, cells
//   stage   a row for each stage
//   cube    blocks, in each a row and a column for every place along the axes chosen for them

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {import("./nest.js").Level} Level */
/** @typedef {"rows" | "columns" | "blocks"} Role */
/** @typedef {Record<Role, string[]>} Roles  axes of each, the slowest first */
/** @typedef {{mesh: string, roles: Roles}} Cube */

/**
 * @typedef {object} Arrangement
 * @property {string} arrange  node, stage or cube
 * @property {string} cube     of a cube its axes, "" for the usual ones
 */

/** @type {Role[]} */
export const ROLES = ["rows", "columns", "blocks"];

const PLAIN = { columns: 0, gap: 0, left: 0, top: 0, pad: 0 };
const GUTTER = 80;
const NAME = 17;
const MOST_BANDS = 128;
/** Nodes up to which one's cells may stand in a row too, where that makes them larger. */
const FEW_NODES = 2;

/**
 * Returns the levels of an arrangement.
 * @param {Scene} scene
 * @param {Arrangement} arrangement
 * @returns {Level[]}
 */
export function levelsOf(scene, { arrange, cube }) {
  const axes = arrange === "cube" && readCube(cube, scene);
  if (axes) return byAxes(scene, axes);
  return arrange === "stage" ? byStage(scene) : byNode(scene);
}

/**
 * Returns what says where ranks stand: while it stays the same, so does the view.
 * @param {Scene} scene
 * @param {Arrangement} arrangement
 */
export function shapeOf(scene, { arrange, cube }) {
  const levels = levelsOf(scene, { arrange, cube });
  const { node_gpus: gpus, ranks_per_node: most } = scene.job;
  return [scene.worldSize, most, gpus, ...levels.map(({ name, count }) => name + count)].join();
}

/**
 * Returns the levels of nodes.
 * @param {Scene} scene
 * @returns {Level[]}
 */
export function byNode(scene) {
  const { job } = scene;
  const most = Math.min(scene.worldSize, job.ranks_per_node);
  const rooms = job.node_gpus.map((gpus) => gpus / job.gpus_per_rank);
  const node = { ...PLAIN, gap: 8, top: NAME, pad: 4, isSmall: true };
  const cells = { ...PLAIN, name: "cell", place: scene.localRank, count: most };
  const numNodes = last(scene.node) + 1;
  const usual = nodeColumns(most);
  const inner =
    numNodes <= FEW_NODES ? { ...cells, choices: [usual, most] } : { ...cells, columns: usual };
  const nodes = { ...node, name: "node", place: scene.node, count: numNodes, rooms };
  if (rooms.length) return [nodes, inner];
  /** @type {Level[]} */
  const levels = [];
  /** @type {Int32Array | null} */
  let around = null;
  for (const { of, ...look } of surroundings(scene)) {
    if (last(of) < 1 || !wholeIn(of, scene.node) || (around && !wholeIn(around, of))) continue;
    const place = around ? placesWithin(around, of) : of;
    levels.push({ ...PLAIN, ...look, place, count: last(place) + 1 });
    around = of;
  }
  if (!around) return [nodes, inner];
  const place = placesWithin(around, scene.node);
  return [...levels, { ...nodes, place, count: last(place) + 1, rooms: undefined }, inner];
}

/** Returns what nodes may stand in: stages or replicas, and racks. @param {Scene} scene */
function surroundings(scene) {
  const [slowest] = scene.meshes;
  const [axis = ""] = Object.keys(slowest?.axes ?? {});
  const along = scene.along(slowest?.name, axis);
  const numNodes = last(scene.node) + 1;
  const isStage = last(scene.stage) > 0 && wholeIn(scene.stage, scene.node);
  const bands = [];
  if (isStage) bands.push({ name: "stage", of: scene.stage, gap: 10, left: GUTTER });
  else if (along && 2 * slowest.axes[axis] <= numNodes && slowest.axes[axis] <= MOST_BANDS)
    bands.push({
      name: "band",
      axes: [{ axis, size: slowest.axes[axis] }],
      of: along,
      gap: 10,
      left: GUTTER,
    });
  if (scene.domain) bands.push({ name: "domain", of: scene.domain, gap: 8, top: NAME, pad: 3 });
  return bands;
}

/**
 * Returns the levels of stages, each a row.
 * @param {Scene} scene
 * @returns {Level[]}
 */
export function byStage(scene) {
  const numStages = last(scene.stage) + 1;
  return [
    {
      ...PLAIN,
      name: "stage",
      place: scene.stage,
      count: numStages,
      columns: 1,
      gap: 10,
      left: GUTTER,
    },
    { ...PLAIN, name: "cell", place: scene.placeInStage, count: last(scene.placeInStage) + 1 },
  ];
}

/**
 * Returns the levels of a cube: blocks side by side, in each the rows, in each the columns.
 * @param {Scene} scene
 * @param {Cube} cube
 * @returns {Level[]}
 */
export function byAxes(scene, { mesh, roles }) {
  const of = scene.meshes.find(({ name }) => name === mesh) ?? scene.meshes[0];
  const world = scene.worldSize;
  const along = (/** @type {string} */ axis) => scene.along(of.name, axis) ?? new Int32Array(world);
  const size = (/** @type {string} */ axis) => of.axes[axis] ?? 1;
  /** @type {Level[]} */
  const levels = [];
  if (roles.blocks.length) {
    const place = new Int32Array(world);
    for (const axis of roles.blocks) {
      const at = along(axis);
      for (let rank = 0; rank < world; rank++) place[rank] = place[rank] * size(axis) + at[rank];
    }
    const count = roles.blocks.reduce((all, axis) => all * size(axis), 1);
    const axes = roles.blocks.map((axis) => ({ axis, size: size(axis) }));
    levels.push({ ...PLAIN, name: "block", axes, place, count, gap: 12, top: NAME });
  }
  for (const role of /** @type {const} */ (["rows", "columns"]))
    roles[role].forEach((axis, i) => {
      const isInner = i + 1 === roles[role].length;
      const count = size(axis);
      const columns = role === "rows" ? 1 : count;
      const gap = isInner ? 0 : 4;
      const axes = [{ axis, size: count }];
      const name = role === "rows" ? "row" : "column";
      levels.push({ ...PLAIN, name, axes, place: along(axis), count, columns, gap });
    });
  if (roles.rows.length + roles.columns.length === 0)
    levels.push({ ...PLAIN, name: "cell", place: new Int32Array(world), count: 1, columns: 1 });
  return levels;
}

/**
 * Reads a cube as an address holds it: [MESH:]ROWS/COLUMNS/BLOCKS, each axes joined by commas.
 * What is left out, or is no axis of the mesh, stands among the blocks.
 * @param {string} text
 * @param {Scene} scene
 * @returns {Cube | null}  null where no mesh holds the world
 */
export function readCube(text, scene) {
  const usual = scene.meshes[0];
  if (!usual) return null;
  const [, named = "", spec = ""] = /^(?:([^:/]*):)?(.*)$/.exec(text) ?? [];
  const mesh = scene.meshes.find(({ name }) => name === named) ?? usual;
  if (!spec) return { mesh: mesh.name, roles: copied(mesh.roles) };
  const parts = spec.split("/");
  const left = new Set(Object.keys(mesh.axes));
  /** @type {Roles} */
  const roles = { rows: [], columns: [], blocks: [] };
  ROLES.forEach((role, i) => {
    for (const axis of (parts[i] ?? "").split(",")) if (left.delete(axis)) roles[role].push(axis);
  });
  const order = Object.keys(mesh.axes);
  roles.blocks = order.filter((axis) => left.has(axis) || roles.blocks.includes(axis));
  return { mesh: mesh.name, roles };
}

/**
 * Writes a cube as an address holds it, "" for the usual one.
 * @param {Cube} cube
 * @param {Scene} scene
 */
export function writeCube({ mesh, roles }, scene) {
  const of = scene.meshes.find(({ name }) => name === mesh);
  const spec = specOf(roles);
  const isUsual = of && spec === specOf(of.roles);
  const prefix = of === scene.meshes[0] ? "" : `${mesh}:`;
  return isUsual ? prefix : prefix + spec;
}

/**
 * Returns a cube with an axis in another role, axes of a role in the mesh's order.
 * @param {Cube} cube
 * @param {string} axis
 * @param {Role} role
 * @param {Scene} scene
 * @returns {Cube}
 */
export function withAxis({ mesh, roles }, axis, role, scene) {
  const order = Object.keys(scene.meshes.find(({ name }) => name === mesh)?.axes ?? {});
  const next = copied(roles);
  for (const each of ROLES) next[each] = next[each].filter((other) => other !== axis);
  next[role].push(axis);
  next[role].sort((one, other) => order.indexOf(one) - order.indexOf(other));
  return { mesh, roles: next };
}

/** @param {Roles} roles */
function specOf(roles) {
  return ROLES.map((role) => roles[role].join(",")).join("/");
}

/** @param {Roles} roles @returns {Roles} */
function copied({ rows, columns, blocks }) {
  return { rows: [...rows], columns: [...columns], blocks: [...blocks] };
}

/** @param {Int32Array} numbers */
function last(numbers) {
  let most = 0;
  for (const each of numbers) if (each > most) most = each;
  return most;
}

/**
 * Tells whether items lie whole in larger ones that follow one another in order.
 * @param {Int32Array} outer  of each rank
 * @param {Int32Array} inner  of each rank
 */
function wholeIn(outer, inner) {
  const outerOf = new Int32Array(last(inner) + 1).fill(-1);
  for (let rank = 0; rank < inner.length; rank++) {
    const known = outerOf[inner[rank]];
    if (known >= 0 && known !== outer[rank]) return false;
    outerOf[inner[rank]] = outer[rank];
  }
  return outerOf.every((each, i) => each >= 0 && (!i || each >= outerOf[i - 1]));
}

/**
 * Returns the place of each rank's inner item among those of its outer one.
 * @param {Int32Array} outer
 * @param {Int32Array} inner
 */
function placesWithin(outer, inner) {
  const first = new Int32Array(last(outer) + 1).fill(-1);
  for (let rank = 0; rank < inner.length; rank++) {
    const known = first[outer[rank]];
    if (known < 0 || inner[rank] < known) first[outer[rank]] = inner[rank];
  }
  return inner.map((each, rank) => each - first[outer[rank]]);
}

/**
 * Returns the columns of a node's cells: 4 for 8 ranks, as two rows of a machine's GPUs.
 * @param {number} capacity
 */
export function nodeColumns(capacity) {
  const least = Math.ceil(Math.sqrt(capacity));
  for (let n = least; n <= 2 * least; n++) if (capacity % n === 0) return n;
  return least;
}
