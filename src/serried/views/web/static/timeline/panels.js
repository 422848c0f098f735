// The panels beside the timeline: of a range, and of the GPUs of a profile.

export { GpusPanel } from "./gpus.js";
export { StretchPanel } from "./stretch.js";
