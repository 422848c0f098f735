// The tab of the plan and its traffic on the map, as they are fetched once they are needed.

export { PlanDesk } from "./desk.js";
export { planReadback } from "./readback.js";
export { PlanTraffic } from "./traffic.js";
