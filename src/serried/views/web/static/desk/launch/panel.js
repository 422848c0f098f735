// The panel of what was read: where each size stands, what was found, and what is asked for.

import { byId, make } from "../../base/dom.js";
import { counted, language, t } from "../../base/i18n.js";
import { PLAN_FIELDS } from "../../plan/state.js";
import { JOB_FIELDS, linesOf } from "../state/fields.js";
import { LABELS } from "../state/sizes.js";

/**
 * @typedef {object} Told  what Python says of launch files (serried.launch/1)
 * @property {string} file
 * @property {string} format
 * @property {{name: string, value: string, from: string, is_setting: boolean}[]} sources
 * @property {{name: string, kind: string, because: string, choices?: string[]}[]} missing
 * @property {string[]} notes
 * @property {{kind: string, is_important: boolean, evidence: string[], cure: string | null}[]}
 *   findings
 * @property {Record<string, string[]> | null} job  what the form is to hold; null while something
 *   is missing
 * @property {Record<string, string>} training  what the forms of Plan and Schedule are to hold
 * @property {string} assumed  what a plan needs that the files do not say; "" without a layout
 */
/** @typedef {import("./files.js").Answers} Answers */
/** @typedef {import("../../base/scene.js").FrameworkTable} FrameworkTable */
/** @typedef {import("../state/fields.js").Field} Field */
/** @typedef {import("../state/fields.js").State} State */

/** Names of what is no size. @type {Record<string, string>} */
const NAMES = {
  framework: "job.framework",
  nodes: "reading.nodes",
  encoding: "reading.encoding",
  recipe: "reading.recipe",
  model: "plan.model",
  sequence: "plan.sequence",
  global_batch: "plan.global_batch",
  micro_batch: "plan.micro_batch",
  recompute: "plan.recompute",
  compute: "plan.compute",
  schedule: "plan.schedule",
  plan_more: "plan.more",
};

/** Listens to the panel. @param {(answers: Answers) => void} answer @param {() => void} close */
export function listenToReading(answer, close) {
  byId("reading-close").addEventListener("click", close);
  byId("missing").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = [...fields()]
      .filter(({ value }) => value.trim())
      .map(({ name, value }) => [name, value.trim()]);
    answer(Object.fromEntries(given));
  });
}

/** Takes the panel away. */
export function hideReading() {
  byId("reading").hidden = true;
}

/** Shows a reading. @param {Told} told @param {FrameworkTable[]} frameworks */
export function showReading(told, frameworks) {
  const isOpen = told.missing.length > 0;
  byId("reading").hidden = false;
  byId("reading-title").textContent = t(isOpen ? "reading.open" : "reading.title", {
    file: told.file,
  });
  byId("reading-format").textContent = told.format;
  byId("missing").hidden = !isOpen;
  byId("missing").replaceChildren(...(isOpen ? questions(told, frameworks) : []));
  byId("advice").replaceChildren(
    ...told.notes.map((note) => make("li", {}, note)),
    ...advice(told),
    ...(told.assumed ? [make("li", {}, told.assumed)] : []),
  );
  byId("sources").replaceChildren(make("tbody", {}, ...told.sources.map(row)));
  byId("reading-details").scrollTo(0, 0);
  if (!isOpen) return;
  /** @type {HTMLDetailsElement} */ (byId("reading-details")).open = true;
  fields()[0]?.focus();
}

/**
 * Marks the sizes that the form holds otherwise, and takes away advice on another job.
 * @param {State} state
 * @param {State} read
 */
export function markChanged(state, read) {
  for (const line of byId("sources").querySelectorAll("tr")) {
    const { name = "", value = "", setting } = line.dataset;
    const field = /** @type {Field | undefined} */ (
      setting ? "set" : [...JOB_FIELDS, ...PLAN_FIELDS].find((each) => each === name)
    );
    const isSame =
      !field ||
      (setting ? linesOf(state.set).includes(`${name}=${value}`) : state[field] === read[field]);
    line.classList.toggle("changed", !isSame);
    const now = /** @type {HTMLElement} */ (line.querySelector("small"));
    now.textContent = isSame
      ? ""
      : setting
        ? t("reading.changed")
        : t("reading.now", { value: state[field] || t("reading.unset") });
  }
  const isJob = JOB_FIELDS.every((field) => state[field] === read[field]);
  byId("reading").classList.toggle("edited", !isJob);
}

/** Marks the question that a refused answer was given to. @param {string} name */
export function blameAsked(name) {
  for (const field of fields()) field.toggleAttribute("aria-invalid", false);
  const field = [...fields()].find((each) => each.name === name);
  field?.setAttribute("aria-invalid", "true");
  field?.focus();
}

/** @returns {NodeListOf<HTMLInputElement | HTMLSelectElement>} */
function fields() {
  return byId("missing").querySelectorAll("input, select");
}

/** @param {Told} told @param {FrameworkTable[]} frameworks */
function questions(told, frameworks) {
  const titles = frameworks.map(
    ({ name, title }) => /** @type {[string, string]} */ ([name, title]),
  );
  const asked = told.missing.map(({ name, kind, because, choices = [] }, i) =>
    make(
      "div",
      { class: "question" },
      make("label", { for: `asked-${i}` }, nameOf(name)),
      kind === "framework" || kind === "choice"
        ? choice(`asked-${i}`, name, choices.length ? choices.map((each) => [each, each]) : titles)
        : make("input", {
            id: `asked-${i}`,
            name: kind === "setting" ? `set:${name}` : name,
            inputmode: kind === "size" && name !== "order" ? "numeric" : "text",
            "aria-describedby": `because-${i}`,
            autocomplete: "off",
            spellcheck: "false",
          }),
      make("span", { id: `because-${i}` }, because),
    ),
  );
  return [
    make("p", {}, t("missing.title", { file: told.file })),
    ...asked,
    make("button", { type: "submit" }, t("missing.submit")),
  ];
}

/** @param {string} id @param {string} name @param {[string, string][]} titles */
function choice(id, name, titles) {
  const options = titles.map(([value, title]) => make("option", { value }, title));
  return make(
    "select",
    { id, name },
    make("option", { value: "" }, t("missing.choose")),
    ...options,
  );
}

/** @param {Told} told */
function advice(told) {
  const items = told.findings.map(({ evidence, cure, is_important }) => {
    const seen = make("summary", {}, make("span", {}, evidence.join(t("reading.stop"))));
    const helps = cure ? [make("p", {}, t("reading.cure", { cure }))] : [];
    return make(
      "li",
      { class: is_important ? "important" : "minor" },
      make("details", {}, seen, ...helps),
    );
  });
  const important = items.filter((item) => item.className === "important");
  const minor = items.filter((item) => item.className === "minor");
  if (!minor.length) return important;
  const more = make(
    "details",
    {},
    make("summary", {}, counted("reading.minor", minor.length)),
    make("ul", {}, ...minor),
  );
  return [...important, make("li", { class: "more" }, more)];
}

/** @param {Told["sources"][number]} source */
function row({ name, value, from, is_setting }) {
  const shown = is_setting ? make("code", {}, name) : nameOf(name);
  const properties = {
    "data-name": name,
    "data-value": value,
    ...(is_setting ? { "data-setting": "true" } : {}),
  };
  return make(
    "tr",
    properties,
    make("th", { scope: "row" }, shown),
    make("td", {}, make("b", {}, value), make("small", {})),
    make("td", {}, from),
  );
}

/** @param {string} name */
function nameOf(name) {
  return LABELS[name]?.[language()] ?? (name in NAMES ? t(NAMES[name]) : name);
}
