// The panel of ZeRO, as it is fetched once it is opened.

export { ShardingDesk } from "./desk.js";
export { shardingReadback } from "./readback.js";
