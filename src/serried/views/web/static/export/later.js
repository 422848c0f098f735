// The export menu, as it is fetched once it is opened.

export { openExports } from "./desk.js";
