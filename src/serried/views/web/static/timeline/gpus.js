// The panel of a profile of GPUs: where their time went, why they were idle, what ran, who waited.
//
//   rank   computing   alone: messages, copies   idle   overlap
//   stream of one rank   busy   host wait   kernel wait   other
//   kinds and names of its operations · groups of ranks · the rank that others wait for

import { duration } from "../base/clock.js";
import { byId, make } from "../base/dom.js";
import { language, number, t } from "../base/i18n.js";
import { bytesText, percentText } from "../base/quantity.js";
import { Refusal, askDocument } from "../base/questions.js";

const RANKS_SHOWN = 16;
const STREAMS_SHOWN = 4;
const KERNELS_SHOWN = 8;
const GROUPS_SHOWN = 6;

/**
 * @typedef {object} GpuRank  of serried.gpu-stats/1; times in microseconds
 * @property {number} rank
 * @property {string} host
 * @property {Record<string, number> & {overlap: number | null}} time
 * @property {{kinds: string[], length_us: number}[]} kinds
 * @property {{name: string, short_name: string, count: number, total_us: number}[]} kernels
 * @property {Record<string, number>[]} streams
 */
/**
 * @typedef {object} GpuStats
 * @property {{lines: string[]}} verdict
 * @property {number} idlest
 * @property {GpuRank[]} ranks
 * @property {Record<string, any>[]} traffic
 * @property {Record<string, number>[]} waits
 */

/** Shows what is measured of the GPUs of the trace in view, where it is a profile. */
export class GpusPanel {
  /** @param {import("./state.js").Host} host */
  constructor(host) {
    this.host = host;
    /** @type {GpuStats | null} */
    this.stats = null;
    /** The rank whose operations are told. */
    this.rank = -1;
    this.newest = "";
    this.asked = 0;
    document.addEventListener("spoken", () => void this.take());
    byId("gpus-rank").addEventListener("change", (event) => {
      this.rank = Number(/** @type {HTMLSelectElement} */ (event.target).value);
      this._show();
    });
  }

  get isBusy() {
    return this.asked > 0;
  }

  /** Asks what is measured of the trace in view, and shows it. */
  async take() {
    const { host } = this;
    const isProfile = Boolean(host.tracks?.hasGpus);
    byId("gpus").hidden = !isProfile;
    if (!isProfile) return void Object.assign(this, { stats: null, newest: "" });
    const words = `trace=${host.trace}&lang=${language()}`;
    if (words === this.newest) return;
    this.newest = words;
    this.asked++;
    try {
      const stats = await askDocument(`trace/gpus?${words}`);
      if (words !== this.newest) return;
      this.stats = stats;
      const known = stats.ranks.some((/** @type {GpuRank} */ each) => each.rank === this.rank);
      if (!known) this.rank = stats.idlest;
      this._show();
    } catch (error) {
      if (!(error instanceof Refusal)) return host.fail(error);
      fill("gpus-all", [make("p", { class: "note" }, error.message)]);
    } finally {
      this.asked--;
    }
  }

  _show() {
    const { stats } = this;
    if (!stats) return;
    const lines = stats.verdict.lines.map((line) => make("p", {}, line));
    fill("gpus-all", [...lines, times(stats.ranks), ...groups(stats), ...waits(stats)]);
    const options = stats.ranks.map(({ rank }) => make("option", { value: rank }, String(rank)));
    const select = /** @type {HTMLSelectElement} */ (byId("gpus-rank"));
    select.replaceChildren(...options);
    select.value = String(this.rank);
    byId("gpus-rank-box").hidden = options.length < 2;
    const rank = stats.ranks.find((each) => each.rank === this.rank);
    fill("gpus-one", rank ? [streams(rank), kinds(rank), kernels(rank)] : []);
  }
}

/** @param {GpuRank[]} ranks */
function times(ranks) {
  const rows = [...ranks]
    .sort((one, other) => share(other, "idle_us") - share(one, "idle_us"))
    .slice(0, RANKS_SHOWN)
    .map((rank) => {
      const { time } = rank;
      const copies = (time.not_computing_us - time.exposed_us) / time.window_us;
      return [
        String(rank.rank),
        percentText(share(rank, "idle_us")),
        percentText(share(rank, "computing_us")),
        percentText(share(rank, "exposed_us")),
        percentText(copies),
        time.overlap === null ? "–" : percentText(time.overlap),
      ];
    });
  const heads = ["rank", "idle", "computing", "exposed", "copies", "overlap"];
  return table("gpus.time", heads, rows, ranks.length);
}

/** @param {GpuRank} rank @param {string} part */
function share({ time }, part) {
  return time.window_us ? time[part] / time.window_us : 0;
}

/** @param {GpuRank} rank */
function streams({ streams: found }) {
  const parts = ["busy_us", "host_wait_us", "kernel_wait_us", "other_us"];
  const rows = found
    .slice(0, STREAMS_SHOWN)
    .map((each) => [String(each.stream), ...parts.map((part) => microseconds(each[part]))]);
  const heads = ["stream", "busy", "host_wait", "kernel_wait", "other"];
  return table("gpus.streams", heads, rows, found.length);
}

/** @param {GpuRank} rank */
function kinds({ kinds: found }) {
  const busy = found.reduce((sum, each) => sum + each.length_us, 0) || 1;
  const rows = found.map((each) => [
    each.kinds.map((kind) => t(`gpus.${kind}`)).join(" + "),
    microseconds(each.length_us),
    percentText(each.length_us / busy),
  ]);
  return table("gpus.kinds", ["kind", "total", "share"], rows, rows.length);
}

/** @param {GpuRank} rank */
function kernels({ kernels: found }) {
  /** @type {Map<string, {total: number, count: number}>} */
  const together = new Map();
  for (const { short_name: name, total_us: total, count } of found) {
    const before = together.get(name) ?? { total: 0, count: 0 };
    together.set(name, { total: before.total + total, count: before.count + count });
  }
  const whole = found.reduce((sum, each) => sum + each.total_us, 0) || 1;
  const rows = [...together]
    .sort((one, other) => other[1].total - one[1].total)
    .slice(0, KERNELS_SHOWN)
    .map(([name, { total, count }]) => [
      name,
      microseconds(total),
      percentText(total / whole),
      number(count),
    ]);
  return table("gpus.kernels", ["name", "total", "share", "count"], rows, together.size);
}

/** @param {GpuStats} stats */
function groups({ traffic }) {
  if (!traffic.length) return [];
  const rows = traffic.slice(0, GROUPS_SHOWN).map((each) => {
    const speed = each.busbw_bytes_per_s;
    const least = each.is_whole ? "" : "≥ ";
    return [
      `${each.group || t("gpus.not_recorded")} ${each.operation} × ${number(each.count)}`,
      microseconds(each.transfer_us / each.count),
      microseconds(each.wait_us / each.count),
      speed === null ? "–" : `${least}${bytesText(speed, 1000)}/s`,
    ];
  });
  const heads = ["group", "transfer", "wait", "busbw"];
  return [table("gpus.groups", heads, rows, traffic.length)];
}

/** @param {GpuStats} stats */
function waits({ waits: found }) {
  if (!found.some(({ meetings }) => meetings)) return [];
  const rows = found
    .slice(0, RANKS_SHOWN)
    .map((each) => [
      String(each.rank),
      microseconds(each.waited_for_us),
      `${number(each.was_last)} / ${number(each.meetings)}`,
      microseconds(each.waits_us),
    ]);
  return [table("gpus.waits", ["rank", "waited_for", "last", "waits_us"], rows, found.length)];
}

/** @param {number} value */
function microseconds(value) {
  return duration(1000 * value);
}

/**
 * @param {string} title
 * @param {string[]} heads
 * @param {string[][]} rows
 * @param {number} count  of all rows, of which some may be shown
 */
function table(title, heads, rows, count) {
  const more = count - rows.length;
  const [name, ...others] = heads.map((head) => t(`gpus.${head}`));
  const body = rows.map(([first, ...words]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", title: first }, first),
      ...words.map((word) => make("td", {}, word)),
    ),
  );
  if (more > 0) body.push(make("tr", {}, make("th", {}, t("gpus.more", { count: number(more) }))));
  const head = [make("th", {}, name), ...others.map((word) => make("td", {}, word))];
  return make(
    "div",
    { class: "wide" },
    make(
      "table",
      { class: "stretch gpus" },
      make("caption", {}, t(title)),
      make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...body),
    ),
  );
}

/** @param {string} id @param {Node[]} children */
function fill(id, children) {
  byId(id).replaceChildren(...children);
}
