// The player of collectives, as it is fetched once it is opened.

export { CollectiveDesk } from "./desk.js";
export { collectiveReadback } from "./readback.js";
