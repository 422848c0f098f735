// Actions and idle time of a schedule in words: what the tip shows, and what is said aloud.

import { language, t } from "../base/i18n.js";
import { numberText, percentText } from "../base/quantity.js";
import { readMeasured } from "./measured.js";

/** @typedef {import("./model/simulated.js").Simulated} Simulated */
/** @typedef {import("./paint/picture.js").Spot} Spot */

const STAGES_WRITTEN = 2;

/**
 * Names a block as people read it.
 * @param {string} name
 * @param {Simulated | null | undefined} data
 * @param {string[]} [runs] the names of the traces, for one that could not be
 */
export function blockTitle(name, data, runs = []) {
  if (data?.isMeasured)
    return t("measured.title", { run: data.header.name, step: data.header.step ?? "" });
  const measured = readMeasured(name);
  return measured
    ? t("measured.title", { run: runs[Number(measured.trace)] ?? "?", step: measured.step })
    : name;
}

/**
 * Returns what is written beside the rows and on the axis.
 * @param {() => (Simulated | null)[]} blocks
 * @returns {import("./view.js").Names}
 */
export function namesFor(blocks) {
  return {
    row: scheduleRow,
    peak: peakName,
    cause: causeNames,
    axis: () => {
      const isMeasured = blocks().some((data) => data?.isMeasured);
      return t(isMeasured ? "schedule.axis_ms" : "schedule.axis");
    },
  };
}

/**
 * Writes the commands that print the same; schedules of the same options share one.
 * @param {(Simulated | null)[]} blocks
 */
export function commandText(blocks) {
  /** @type {Map<string, string[]>} */
  const byOptions = new Map();
  for (const data of blocks) {
    if (!data || data.isMeasured) continue;
    const { name, options } = data.header;
    byOptions.set(options, [...(byOptions.get(options) ?? []), name]);
  }
  return [...byOptions]
    .map(([options, names]) => `serried schedule ${names.join(",")} ${options}`)
    .join(" && ");
}

/**
 * Names a row: its rank, and the stages it holds.
 * @param {Simulated} data
 * @param {number} rank
 * @returns {[string, string]}
 */
function scheduleRow(data, rank) {
  const stages = data.header.stages_of[rank];
  const some =
    stages.length > STAGES_WRITTEN
      ? `${stages[0]} … ${stages[stages.length - 1]}`
      : stages.join(" ");
  return [t("timeline.rank", { rank: data.rankName(rank) }), `s ${some}`];
}

/** Writes the most activations of a rank. @param {Simulated} data @param {number} rank */
function peakName(data, rank) {
  return t("strip.label", { count: data.level(rank).peak });
}

/** Writes what is under a spot, a line each. @param {Spot} spot @param {Simulated} data */
export function spotLines(spot, data) {
  if (spot.isStrip) return stripLines(spot, data);
  if (spot.entry >= 0) return actionLines(spot, data);
  return spot.idle >= 0 ? idleLines(spot, data) : [];
}

/** @param {Spot} spot @param {Simulated} data */
function actionLines({ entry, rank }, data) {
  const lines = [
    t("spot.action", {
      action: data.actionName(entry),
      kind: kindName(data, entry),
      rank: data.rankName(rank),
    }),
    t("spot.place", { stage: data.stage[entry], microbatch: data.microbatch[entry] }),
    extentText(data.times.start[entry], data.times.end[entry]),
  ];
  const pair = data.partner(entry);
  if (pair >= 0) lines.push(t("spot.pair", { action: data.actionName(pair) }));
  const path = data.isMeasured ? [] : [pathText(data, entry)];
  return [
    ...lines,
    inputText(data, entry),
    ...waitText(data, pair >= 0 ? Math.min(entry, pair) : entry),
    ...path,
  ];
}

/** @param {Simulated} data @param {number} entry */
export function kindName(data, entry) {
  return t(`action.${data.kinds[data.class[entry]].name}`);
}

/** Writes when something runs, and how long. @param {number} start @param {number} end */
export function extentText(start, end) {
  return t("spot.extent", {
    start: numberText(start),
    end: numberText(end),
    length: numberText(end - start),
  });
}

/** Writes what an action needed from another rank. @param {Simulated} data @param {number} entry */
export function inputText(data, entry) {
  const source = data.source[entry];
  if (source < 0) return t("spot.no_input");
  const values = {
    action: data.actionName(source),
    rank: data.rankName(data.rankOf(source)),
    end: numberText(data.times.end[source]),
  };
  if (!data.header.latency) return t("spot.input", values);
  return t("spot.input_late", {
    ...values,
    arrival: numberText(data.times.end[source] + data.header.latency),
  });
}

/**
 * Writes how long the rank waited before an action, and why.
 * @param {Simulated} data
 * @param {number} entry
 */
export function waitText(data, entry) {
  return data
    .idleBefore(entry)
    .reverse()
    .map((idle) =>
      t("spot.waited", {
        length: numberText(data.idle.end[idle] - data.idle.start[idle]),
        cause: causeText(data, idle),
      }),
    );
}

/** @param {Simulated} data @param {number} entry */
export function pathText(data, entry) {
  return t(data.critical[entry] ? "spot.critical" : "spot.not_critical");
}

/** @param {Spot} spot @param {Simulated} data */
function idleLines({ idle, rank }, data) {
  const { start, end } = data.idle;
  return [
    t("spot.idle", { rank: data.rankName(rank), length: numberText(end[idle] - start[idle]) }),
    causeText(data, idle),
    extentText(start[idle], end[idle]),
  ];
}

/** Writes why a rank is idle, in a whole sentence. @param {Simulated} data @param {number} idle */
export function causeText(data, idle) {
  const source = data.idle.source[idle];
  const cause = data.causes[data.idle.cause[idle]];
  if (source < 0) return t(`why.${cause}`, { limit: data.header.limit ?? 0 });
  return t(`why.${cause}.of`, {
    action: data.actionName(source),
    rank: data.rankName(data.rankOf(source)),
    stage: data.stage[source],
    microbatch: data.microbatch[source],
  });
}

/**
 * Names a cause for the picture, the longest way first.
 * @param {Simulated} data
 * @param {number} idle
 */
function causeNames(data, idle) {
  const cause = data.causes[data.idle.cause[idle]];
  const source = data.idle.source[idle];
  if (cause !== "DEPENDENCY" || source < 0) return [t(`cause.${cause}`)];
  const action = data.actionName(source);
  return [t("cause.for", { action }), action];
}

/** @param {Spot} spot @param {Simulated} data */
function stripLines({ rank, time }, data) {
  const { limit, parts } = data.header;
  const level = data.level(rank);
  const lines = [
    t("strip.held", { rank: data.rankName(rank), count: level.at(time), time: numberText(time) }),
    t("strip.peak", { count: level.peak }),
  ];
  if (limit !== null) lines.push(t("strip.limit", { limit }));
  if (parts > 1) lines.push(t("strip.parts", { parts }));
  return lines;
}

/**
 * Writes the numbers of a schedule, each with its name and what it means.
 * @param {Simulated} data
 * @returns {{before: string, value: string, after: string, title: string}[]}
 */
export function scheduleFacts({ header }) {
  const { bubble, peak, parts } = header;
  const of = parts > 1 ? ` ${t("head.parts", { parts })}` : "";
  const share = (/** @type {"makespan" | "over_ideal" | "window"} */ name, before = "") => ({
    before,
    value: percentText(bubble[name]),
    after: t(`rate.${name}`),
    title: t(`rate.${name}_title`),
  });
  const title = t("head.peak_title");
  return [
    {
      before: "",
      value: numberText(header.makespan),
      after: t("head.makespan"),
      title: t("head.makespan_title"),
    },
    share("makespan", t("head.bubble")),
    share("over_ideal"),
    share("window"),
    {
      before: t("head.activations"),
      value: String(peak.to_weight),
      after: t("head.peak_weight"),
      title,
    },
    { before: "", value: String(peak.to_input), after: t("head.peak_input") + of, title },
  ];
}

/** Writes the closed forms of a schedule, where they are exact. @param {Simulated} data */
export function formTexts({ header }) {
  return header.closed_forms.map(({ quantity, formula, value, region }) => {
    const where =
      region === "always" ? t("form.always") : t("form.region", { region: regionText(region) });
    return t("form.line", {
      quantity: t(`quantity.${quantity}`),
      formula,
      value: numberText(value),
      where,
    });
  });
}

/**
 * Says which packages refuse a schedule's sizes, why, and which sizes near them they run.
 * @param {Simulated} data
 */
export function refusalTexts({ header }) {
  return (header.findings ?? []).map((finding) => {
    const { evidence, cure } = finding.in[language()] ?? finding.in.en;
    return [...evidence, ...(cure ? [cure] : [])].join(t("reading.stop"));
  });
}

/** Names the packages that refuse a schedule's sizes. @param {Simulated} data */
export function refusedBy({ header }) {
  return (header.findings ?? []).map((finding) => finding.package).join(t("names.join"));
}

/** @param {string} region */
function regionText(region) {
  return region
    .replace("groups full or at least p", t("form.groups"))
    .replace("p divides m", t("form.divides"));
}
