// Layouts as the map reads them, made by the plainest rule: the first axis is the slowest.

/** Returns a scene of ranks along axes, on nodes of `size` ranks. */
export function sceneOf(axes, size = 8, more = {}) {
  const world = Object.values(axes).reduce((all, each) => all * each, 1);
  const ranks = Array.from({ length: world }, (_, rank) => rank);
  const places = new Map();
  let faster = world;
  for (const [axis, count] of Object.entries(axes)) {
    faster /= count;
    const step = faster;
    places.set(
      axis,
      Int32Array.from(ranks, (rank) => Math.floor(rank / step) % count),
    );
  }
  const stage = places.get("pp") ?? new Int32Array(world);
  const seen = [];
  const roles = { rows: ["pp"], columns: ["tp"], blocks: ["dp"] };
  return {
    worldSize: world,
    node: Int32Array.from(ranks, (rank) => Math.floor(rank / size)),
    localRank: Int32Array.from(ranks, (rank) => rank % size),
    stage,
    placeInStage: stage.map((each) => (seen[each] = (seen[each] ?? -1) + 1)),
    domain: null,
    job: { ranks_per_node: size, node_gpus: [], gpus_per_rank: 1, num_stages: axes.pp ?? 1 },
    meshes: [{ name: "dense", axes, roles }],
    along: (mesh, axis) => places.get(axis),
    kinds: [],
    ...more,
  };
}
