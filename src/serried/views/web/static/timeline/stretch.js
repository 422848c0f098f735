// The panel of a range of the timeline: what its ranks did in it, why they were idle, as text to
// copy.

import { announce } from "../base/announcer.js";
import { duration } from "../base/clock.js";
import { byId, copyText, make } from "../base/dom.js";
import { counted, has, language, number, t } from "../base/i18n.js";
import { percentText } from "../base/quantity.js";
import { Refusal, askDocument } from "../base/questions.js";
import { runsText } from "./trace/range.js";

/** @typedef {import("./trace/range.js").Range} Range */
/**
 * @typedef {object} Stretch  what Python measured (serried.stretch/1); times in nanoseconds
 * @property {number} begin_ns
 * @property {number} end_ns
 * @property {number} num_ranks
 * @property {number} num_spans
 * @property {number} total_ns  of all ranks
 * @property {number} compute_ns
 * @property {Record<string, number>} idle_ns
 * @property {{name: string, num_spans: number, time_ns: number}[]} kinds
 * @property {number} microbatches
 * @property {{rank: number, action: string, start_ns: number, end_ns: number} | null} longest
 */
/** @typedef {{name: string, colour: string, words: string[]}} Line */

/** Shows what is in the range; the range is the timeline's. */
export class StretchPanel {
  /**
   * @param {import("./state.js").Host} host
   * @param {() => void} close  takes the range away
   */
  constructor(host, close) {
    this.host = host;
    /** @type {Range | null} */
    this.range = null;
    /** @type {Stretch | null} */
    this.stretch = null;
    /** What was asked last. */
    this.newest = "";
    this.asked = 0;
    byId("stretch-close").addEventListener("click", close);
    const button = byId("copy-stretch");
    button.addEventListener("click", () =>
      announce(t(copyText(this.text()) ? "copy.done" : "copy.failed"), button),
    );
    document.addEventListener("spoken", () => this._retell());
  }

  get isBusy() {
    return this.asked > 0;
  }

  /** Asks what a range holds and shows it; null shows nothing. @param {Range | null} range */
  async take(range) {
    this.range = range;
    byId("stretch").hidden = !range;
    if (!range) return void Object.assign(this, { newest: "", stretch: null });
    const { host } = this;
    const [from, to] = [Math.round(range.start), Math.round(range.end)];
    const ranks = runsText(range.ranks);
    const words = `trace=${host.trace}&from=${from}&to=${to}&ranks=${ranks}`;
    if (words === this.newest) return;
    this.newest = words;
    this.asked++;
    try {
      const stretch = await askDocument(`trace/stretch?${words}&lang=${language()}`);
      if (words !== this.newest) return;
      this.stretch = stretch;
      this._show();
    } catch (error) {
      if (!(error instanceof Refusal)) return host.fail(error);
      fill(make("p", { class: "note" }, error.message));
    } finally {
      this.asked--;
    }
  }

  /** Says everything in another language, in which a refusal has to be asked for. */
  _retell() {
    const { range } = this;
    if (this.stretch || !range) return this._show();
    this.newest = "";
    void this.take(range);
  }

  /** Returns what is shown as lines of text, their parts set apart by tabs. */
  text() {
    const { stretch } = this;
    if (!stretch) return "";
    const blocks = [
      facts(stretch).map(([name, value]) => [name, value]),
      this._kinds(stretch).map(row),
      causes(stretch).map(row),
    ];
    return blocks.map((lines) => lines.map((words) => words.join("\t")).join("\n")).join("\n\n");
  }

  _show() {
    const { stretch } = this;
    if (!stretch) return;
    const told = facts(stretch).flatMap(([name, value]) => [
      make("dt", {}, name),
      make("dd", {}, value),
    ]);
    const [kinds, idle] = [this._kinds(stretch), causes(stretch)];
    fill(
      make("dl", { class: "facts" }, ...told),
      ...(kinds.length ? [table(t("stretch.kinds"), kinds)] : []),
      ...(idle.length ? [table(t("stretch.causes"), idle)] : []),
    );
  }

  /** @param {Stretch} stretch @returns {Line[]} */
  _kinds({ kinds, total_ns: total }) {
    const actions = [...(this.host.tracks?.actions.values() ?? [])];
    return kinds.map(({ name, num_spans: count, time_ns: time }) => ({
      name: kindName(name),
      colour: actions.find((each) => each.name === name)?.colour ?? "",
      words: [number(count), duration(time), percentText(time / total)],
    }));
  }
}

/** @param {Stretch} stretch @returns {[string, string][]} */
function facts({
  begin_ns: begin,
  end_ns: end,
  num_ranks: ranks,
  num_spans: spans,
  total_ns: total,
  compute_ns: compute,
  microbatches,
  longest,
}) {
  const seconds = (end - begin) / 1e9;
  return [
    [
      t("stretch.time"),
      t("stretch.from_to", {
        begin: duration(begin),
        end: duration(end),
        length: duration(end - begin),
      }),
    ],
    [t("stretch.of"), `${counted("unit.ranks", ranks)} · ${counted("stretch.spans", spans)}`],
    [t("figure.busy"), `${percentText(compute / total)} · ${duration(compute)}`],
    [t("figure.idle"), `${percentText(1 - compute / total)} · ${duration(total - compute)}`],
    .../** @type {[string, string][]} */ (
      microbatches
        ? [
            [
              t("stretch.microbatches"),
              t("stretch.rate", {
                count: number(microbatches),
                rate: number(Number((microbatches / seconds).toPrecision(3))),
              }),
            ],
          ]
        : []
    ),
    .../** @type {[string, string][]} */ (
      longest
        ? [
            [
              t("stretch.longest"),
              t("stretch.longest_is", {
                action: longest.action,
                rank: longest.rank,
                time: duration(longest.end_ns - longest.start_ns),
              }),
            ],
          ]
        : []
    ),
  ];
}

/** @param {Stretch} stretch @returns {Line[]} */
function causes({ idle_ns: idle, total_ns: total }) {
  return Object.entries(idle)
    .filter(([, time]) => time > 0)
    .sort((one, other) => other[1] - one[1])
    .map(([cause, time]) => ({
      name: causeName(cause),
      colour: "",
      words: [duration(time), percentText(time / total)],
    }));
}

/** @param {string} kind */
function kindName(kind) {
  const [first, last] = kind.split("_");
  if (has(`short.${kind}`)) return t(`short.${kind}`);
  return has(`short.${first}`) && has(`short.${last}`)
    ? `${t(`short.${first}`)} · ${t(`short.${last}`)}`
    : kind;
}

/** @param {string} cause */
function causeName(cause) {
  return has(`stretch.${cause}`) ? t(`stretch.${cause}`) : t(`figure.${cause}`);
}

/** @param {Line} line */
function row({ name, words }) {
  return [name, ...words];
}

/** @param {string} title @param {Line[]} lines */
function table(title, lines) {
  const rows = lines.map(({ name, colour, words }) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = colour;
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, ...(colour ? [swatch, " "] : []), name),
      ...words.map((word) => make("td", {}, word)),
    );
  });
  return make(
    "table",
    { class: "stretch" },
    make("caption", {}, title),
    make("tbody", {}, ...rows),
  );
}

/** @param {...Node} children */
function fill(...children) {
  /** @type {HTMLElement} */ (byId("stretch").querySelector("div")).replaceChildren(...children);
}
