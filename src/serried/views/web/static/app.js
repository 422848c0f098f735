// The page: one state, which the address bar holds; every view shows it, and every view changes it.

import { Desk } from "./desk.js";

const desk = new Desk();
await desk.open();
