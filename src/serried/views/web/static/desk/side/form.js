// The form at the left: the type of groups, the sizes, the framework; it writes the state.

import { byId, make, unfold } from "../../base/dom.js";
import { has, language, t } from "../../base/i18n.js";
import { markImage } from "../../base/canvas/marks.js";
import { JOB_FIELDS, TYPES, linesOf, sortedDims } from "../state/fields.js";
import { LABELS, SIZES } from "../state/sizes.js";

/** @typedef {import("../state/fields.js").State} State */
/** @typedef {import("../state/fields.js").Field} Field */
/** @typedef {import("../../base/scene.js").Scene} Scene */
/** @typedef {import("../../base/scene.js").FrameworkTable} FrameworkTable */
/**
 * @typedef {(change: Partial<State>, field?: string) => void} Edit
 *   field is the one that is typed into
 */

/** Terms that explain the name of a size. @type {Record<string, string>} */
const TERMS = { world_size: "world", gpus_per_node: "node", gpus_per_rank: "rank" };
/** Axes that most frameworks have, so that it is said where one has not. */
const AXES = ["tp", "pp", "cp", "ep"];
/** The axes that each framework was last told to have, by its name and version. */
const taken = /** @type {Map<string, string[]>} */ (new Map());
/** The dimensions along which the newest layout of each has groups. */
const grouped = /** @type {Map<string, string[]>} */ (new Map());
/** Values of a size that are offered one by one. */
const FEW = 8;

/** @type {import("../../base/scene.js").PageWords} */
let words = {
  frameworks: [],
  looks: {},
  basics: [],
  limit_bytes: 0,
  collectives: {},
  collective_choices: {},
};

/** Listens to the form. @param {() => State} state @param {Edit} edit @param {() => void} reset */
export function listenToForm(state, edit, reset) {
  makeSizes();
  const form = byId("job");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { id, value } = /** @type {HTMLInputElement} */ (event.target);
    if (id === "type") edit({ dims: value });
    else if (id === "framework") edit({ framework: value });
    else if (id === "version") edit({ framework: `${state().framework.split("@")[0]}@${value}` });
    else if (JOB_FIELDS.includes(/** @type {Field} */ (id))) edit({ [id]: value.trim() }, id);
  });
  byId("dims").addEventListener("click", (event) => {
    const dim = /** @type {HTMLElement} */ (event.target).closest("button")?.dataset.dim;
    if (dim) edit({ dims: sortedDims(toggled(state().dims, dim).split(",")) });
  });
  byId("kinds").addEventListener("change", (event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    edit({ kind: toggled(state().kind, value, "\n") });
  });
  byId("reset").addEventListener("click", reset);
  const powers = Array.from({ length: 15 }, (_, i) => make("option", { value: 2 ** i }));
  byId("powers").replaceChildren(...powers);
}

/** Makes an input for each size of the table, in the row where its part stands. */
function makeSizes() {
  for (const { name, form, part, least, most } of SIZES) {
    const term = TERMS[name] ? { "data-term": TERMS[name] } : {};
    const isNumber = form !== "word";
    const isFew = least !== null && most - least < FEW;
    const list = isFew ? `${name}-values` : isNumber ? "powers" : `${name}s`;
    const input = make("input", {
      id: name,
      list,
      spellcheck: "false",
      ...(isNumber ? { inputmode: "numeric" } : {}),
    });
    const label = make("label", {}, make("span", { "data-size": name, ...term }), input);
    if (!isNumber) label.classList.add("beside");
    const row = byId(isNumber ? `sizes-${part}` : "sizes-words");
    row.insertBefore(label, row.querySelector("label:has(output)"));
    if (!isFew) continue;
    const values = Array.from({ length: most - least + 1 }, (_, i) => least + i);
    const options = values.map((value) => make("option", { value }));
    byId("job").append(make("datalist", { id: list }, ...options));
  }
}

/**
 * Takes the frameworks and looks that the form offers.
 * @param {import("../../base/scene.js").PageWords} page
 */
export function fillForm(page) {
  words = page;
}

/**
 * Shows a state in the form, in the language in use.
 * @param {State} state
 * @param {Scene | null} scene
 */
export function showForm(state, scene) {
  const framework = words.frameworks.find((each) => each.name === state.framework.split("@")[0]);
  if (scene) taken.set(state.framework, scene.job.takes);
  if (scene) grouped.set(state.framework, scene.job.dims);
  const dims = [...new Set(["dp", "tp", "pp", "cp", ...(framework?.dims ?? [])])];
  showTypes(state, framework);
  showDims(state, framework, dims);
  showFrameworks(state);
  for (const span of /** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll("[data-size]")
  ))
    span.textContent = LABELS[span.dataset.size ?? ""][language()];
  for (const field of JOB_FIELDS.filter((each) => each !== "framework")) {
    const control = /** @type {HTMLInputElement} */ (byId(field));
    if (control !== document.activeElement || control.value.trim() !== state[field])
      control.value = state[field];
  }
  if (framework) showFramework(framework, state);
  if (scene) showKinds(state, scene);
  if (scene) /** @type {HTMLOutputElement} */ (byId("dp")).value = String(scene.job.sizes.dp ?? "");
}

/** Marks the control that a sentence is about; "" for none. @param {string} field */
export function blame(field) {
  for (const id of JOB_FIELDS) byId(id).removeAttribute("aria-invalid");
  const control = field && document.getElementById(field);
  if (!control || !JOB_FIELDS.includes(/** @type {Field} */ (field))) return;
  unfold(control).setAttribute("aria-invalid", "true");
}

/**
 * Returns a list of names with one put in, or taken out.
 * @param {string} list
 * @param {string} name
 * @param {string} [between] what parts the names
 */
function toggled(list, name, between = ",") {
  const names = list.split(between).filter(Boolean);
  return names.includes(name)
    ? names.filter((each) => each !== name).join(between)
    : [...names, name].join(between);
}

/** Writes a type as people say it: CP + DP + TP. @param {string} dims */
export function typeName(dims) {
  const names = dims.split(",");
  const spoken = names.includes("cp") ? ["cp", ...names.filter((dim) => dim !== "cp")] : names;
  return spoken.map((dim) => dim.toUpperCase()).join(" + ");
}

/** @param {State} state @param {FrameworkTable | undefined} framework */
function showTypes(state, framework) {
  const select = /** @type {HTMLSelectElement} */ (byId("type"));
  const listed = !state.dims || TYPES.includes(state.dims) ? TYPES : [...TYPES, state.dims];
  const options = listed.map((dims) => {
    const key = `type.${dims}`;
    const full = has(key) ? `${typeName(dims)} · ${t(key)}` : typeName(dims);
    const groups = grouped.get(state.framework) ?? framework?.dims;
    const lacking = dims.split(",").find((dim) => framework && !groups?.includes(dim));
    const disabled = Boolean(lacking);
    const name = lacking
      ? t("type.lacking", { type: full, framework: framework?.title ?? "" })
      : full;
    return make("option", { value: dims, disabled }, name);
  });
  select.replaceChildren(make("option", { value: "" }, t("type.choose")), ...options);
  select.value = state.dims;
}

/** @param {State} state @param {FrameworkTable | undefined} framework @param {string[]} dims */
function showDims(state, framework, dims) {
  const takes = taken.get(state.framework) ?? framework?.dims;
  const groups = grouped.get(state.framework) ?? framework?.dims;
  const shown = state.dims.split(",");
  const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.dim;
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const buttons = dims.map((dim) => {
    const look = words.looks[dim];
    const lacking = framework && !takes?.includes(dim);
    const isEmpty = !lacking && framework && !groups?.includes(dim);
    const name = has(`dim.${dim}`) ? t(`dim.${dim}`) : dim.toUpperCase();
    const title = lacking
      ? t("job.lacking", { dim: dim.toUpperCase(), framework: framework.title })
      : isEmpty
        ? t("job.no_groups", { dim: dim.toUpperCase() })
        : name;
    return make(
      "button",
      {
        type: "button",
        "data-dim": dim,
        "aria-pressed": String(shown.includes(dim)),
        "aria-label": `${dim.toUpperCase()}: ${name}`,
        title,
        disabled: Boolean(lacking || isEmpty) && !shown.includes(dim),
      },
      ...(look ? [markImage(look.mark, isDark ? look.ink_on_dark : look.ink)] : []),
      dim.toUpperCase(),
    );
  });
  byId("dims").replaceChildren(...buttons);
  buttons.find((button) => button.dataset.dim === focused)?.focus();
}

/** @param {State} state */
function showFrameworks(state) {
  const [name, version] = state.framework.split("@");
  const found = words.frameworks.find((each) => each.name === name);
  fillSelect(
    "framework",
    words.frameworks.map((each) => [each.name, each.title]),
    name,
  );
  const versions = [...(found?.versions ?? [])].reverse();
  const known =
    found && !versions.includes(found.version) ? [found.version, ...versions] : versions;
  fillSelect(
    "version",
    known.map((each) => [each, each]),
    version ?? found?.version ?? "",
  );
  byId("version-box").hidden = known.length < 2 && !version;
}

/**
 * Fills a select with choices, the one in use among them whatever it is.
 * @param {string} id
 * @param {string[][]} choices value and text
 * @param {string} chosen
 */
function fillSelect(id, choices, chosen) {
  const select = /** @type {HTMLSelectElement} */ (byId(id));
  const unknown = choices.some(([value]) => value === chosen) ? [] : [[chosen, chosen]];
  select.replaceChildren(
    ...[...choices, ...unknown].map(([value, text]) => make("option", { value }, text)),
  );
  select.value = chosen;
}

/**
 * Shows what a framework takes: its axes, orders and settings, and which axes it has not. A size
 * that it does not take is shown as long as one is asked for.
 * @param {FrameworkTable} framework
 * @param {State} state
 */
function showFramework(framework, state) {
  const takes = taken.get(state.framework) ?? framework.sizes;
  for (const { name, part, usual } of SIZES) {
    if (part === "ranks" || name === "nvlink_domain") continue;
    const isIdle = state[name] === "" || state[name] === usual;
    /** @type {HTMLElement} */ (byId(name).closest("label")).hidden =
      isIdle && !takes.includes(name);
  }
  const lacking = AXES.filter((axis) => !takes.includes(axis)).map((axis) => axis.toUpperCase());
  const note = byId("no-axes");
  note.hidden = !lacking.length;
  note.textContent = lacking.length
    ? t("job.lacking", { dim: lacking.join(t("names.join")), framework: framework.title })
    : "";
  byId("orders").replaceChildren(
    ...framework.orders.map((order) => make("option", { value: order })),
  );
  byId("order").setAttribute("placeholder", framework.order);
  const about = Object.entries(framework.options).flatMap(([key, text]) => [
    make("dt", {}, key),
    make("dd", {}, text),
  ]);
  byId("options").replaceChildren(...about);
}

/** @param {State} state @param {Scene} scene */
function showKinds(state, scene) {
  const chosen = linesOf(state.kind);
  const boxes = scene.allKinds
    .filter((kind) => !kind.dim)
    .map((kind) => {
      const box = make("input", { type: "checkbox", value: kind.name });
      box.checked = chosen.includes(kind.name);
      return make(
        "label",
        { title: kind.note },
        box,
        make("span", {}, kind.name),
        make("small", {}, kind.note),
      );
    });
  byId("kinds").replaceChildren(...boxes);
}
