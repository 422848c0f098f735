// The tab of schedules, as it is fetched once it is needed.

export { ScheduleDesk } from "./desk.js";
export { scheduleReadback } from "./readback.js";
