// The controls of the player: which collective, by which algorithms, of how many bytes; and the
// buttons, the slider and the keys that move it.

import { byId, make } from "../base/dom.js";
import { has, t } from "../base/i18n.js";
import { SPEEDS } from "../base/playback.js";
import { algorithmsOf } from "./state.js";

/** @typedef {import("./execution.js").Execution} Execution */
/** @typedef {import("./state.js").CollectiveState} CollectiveState */
/** @typedef {import("./state.js").Offers} Offers */
/**
 * @typedef {object} BarEvents
 * @property {(change: Partial<CollectiveState>, field?: string) => void} edit
 * @property {() => CollectiveState} state
 * @property {() => void} toggle
 * @property {(way: 1 | -1) => void} step
 * @property {(share: number) => void} seek   a share of the time of all
 * @property {(speed: number) => void} speed
 * @property {() => void} frames
 * @property {() => void} close
 * @property {() => void} left                a field is no longer typed into
 */

/** Parts that the slider divides the time into. */
const PARTS = 1000;
const UNITS = /** @type {const} */ ([
  ["GiB", 2 ** 30],
  ["MiB", 2 ** 20],
  ["KiB", 2 ** 10],
]);
const CHOICES = /** @type {const} */ (["split", "mask"]);

/** Listens to the controls. @param {BarEvents} events */
export function listenToBar(events) {
  const { edit, state } = events;
  onChoice("collective-name", (collective) => edit({ collective, algorithm: "", step: "" }));
  onChoice("collective-algorithm", (name) => {
    const others = algorithmsOf(state().algorithm).slice(1);
    edit({ algorithm: [name, ...others.filter((other) => other !== name)].join(",") });
  });
  onChoice("collective-beside", (name) => {
    const first = select("collective-algorithm").value;
    edit({ algorithm: name ? `${first},${name}` : first });
  });
  for (const word of CHOICES)
    onChoice(`collective-${word}`, (value) => edit({ [word]: value, step: "" }));
  onChoice("collective-speed", (speed) => events.speed(Number(speed)));
  const bytes = input("collective-bytes");
  bytes.addEventListener("input", () => edit({ bytes: bytes.value.trim(), priced: "" }, "bytes"));
  byId("collective-priced").addEventListener("click", () =>
    edit({ priced: state().priced ? "" : "plan", step: "" }),
  );
  bytes.addEventListener("focusout", () => events.left());
  const slider = input("collective-slider");
  slider.addEventListener("input", () => events.seek(Number(slider.value) / PARTS));
  byId("collective-play").addEventListener("click", () => events.toggle());
  byId("collective-back").addEventListener("click", () => events.step(-1));
  byId("collective-forward").addEventListener("click", () => events.step(1));
  byId("collective-frames").addEventListener("click", () => events.frames());
  byId("collective-close").addEventListener("click", () => events.close());
  byId("collective-section").addEventListener("keydown", (event) => key(event, events));
}

/** @param {KeyboardEvent} event @param {BarEvents} events */
function key(event, events) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches("input:not([type=range]), select")) return;
  const isButton = target.matches("button, summary");
  if (event.key === " " && !isButton) events.toggle();
  else if (event.key === "ArrowLeft") events.step(-1);
  else if (event.key === "ArrowRight") events.step(1);
  else if (event.key === "Home") events.seek(0);
  else if (event.key === "End") events.seek(1);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/**
 * Shows what can be chosen, and what is: as it was answered, else as it was asked for.
 * @param {CollectiveState} state
 * @param {Execution[]} executions  none where the question was refused
 * @param {boolean} isFrames
 * @param {Offers} offers
 */
export function showBar(state, executions, isFrames, offers) {
  const bytes = input("collective-bytes");
  const planned = state.priced && executions.length ? exactBytes(executions[0].header) : "";
  if (document.activeElement !== bytes) bytes.value = planned || state.bytes;
  byId("collective-priced").setAttribute("aria-pressed", String(Boolean(state.priced)));
  byId("collective-frames").setAttribute("aria-pressed", String(isFrames));
  const name = executions[0]?.header.name ?? state.collective;
  const [algorithm, second = ""] = executions.length
    ? executions.map(({ header }) => header.algorithm)
    : algorithmsOf(state.algorithm);
  const known = offers.algorithms[name] ?? {};
  const algorithms = Object.keys(known);
  fill("collective-name", Object.keys(offers.algorithms), name);
  fill("collective-algorithm", algorithms, algorithm, "quickest");
  select("collective-algorithm").disabled = !algorithms.length;
  const others = algorithms.filter((each) => each !== algorithm);
  fill("collective-beside", ["", ...others], second);
  select("collective-beside").disabled = !others.length;
  const takes = [algorithm, second].flatMap((each) => known[each] ?? []);
  for (const word of CHOICES) {
    const values = offers.choices[word] ?? [];
    select(`collective-${word}`).hidden = !takes.includes(word);
    fill(`collective-${word}`, values, state[word] || values[0] || "", word);
  }
}

/**
 * Writes bytes as they can be typed: 128MiB where they are whole, else 8556380160.
 * @param {{size_bytes: number}} header
 */
function exactBytes({ size_bytes: bytes }) {
  const whole = UNITS.find(([, size]) => bytes >= size && bytes % size === 0);
  return whole ? `${bytes / whole[1]}${whole[0]}` : String(bytes);
}

/** Fills the choice of speeds. @param {number} speed */
export function showSpeeds(speed) {
  const options = SPEEDS.map((each) =>
    make("option", { value: each, selected: each === speed }, `${each}×`),
  );
  byId("collective-speed").replaceChildren(...options);
}

/**
 * Shows the moment in the slider and on the button that lets it run.
 * @param {{share: number, isPlaying: boolean, isEmpty: boolean, text: string}} moment
 */
export function showMoment({ share, isPlaying, isEmpty, text }) {
  const slider = input("collective-slider");
  slider.value = String(Math.round(share * PARTS));
  slider.setAttribute("aria-valuetext", text);
  const play = byId("collective-play");
  const label = t(isPlaying ? "collective.pause" : "collective.play");
  play.setAttribute("aria-label", label);
  play.title = label;
  play.dataset.playing = String(isPlaying);
  for (const id of ["collective-play", "collective-back", "collective-forward"])
    /** @type {HTMLButtonElement} */ (byId(id)).disabled = isEmpty;
  slider.disabled = isEmpty;
  const now = byId("collective-now");
  if (now.textContent !== text) now.textContent = text;
}

/**
 * Fills a choice; what was asked for and there is not stands first, and cannot be chosen.
 * @param {string} id
 * @param {string[]} values
 * @param {string} chosen
 * @param {"of" | "quickest" | "split" | "mask"} [what]  whose words name them
 */
function fill(id, values, chosen, what = "of") {
  const isKnown = values.includes(chosen);
  const options = (isKnown ? values : [chosen, ...values]).map((value) => {
    const words = `collective.${what}.${value || "none"}`;
    const text = has(words) ? t(words) : value;
    const isChosen = value === chosen;
    return make("option", { value, selected: isChosen, disabled: isChosen && !isKnown }, text);
  });
  select(id).replaceChildren(...options);
}

/** @param {string} id @param {(value: string) => void} act */
function onChoice(id, act) {
  select(id).addEventListener("change", () => act(select(id).value));
}

/** @param {string} id @returns {HTMLSelectElement} */
function select(id) {
  return byId(id);
}

/** @param {string} id @returns {HTMLInputElement} */
function input(id) {
  return byId(id);
}
