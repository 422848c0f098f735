// The desk of the Diagnose tab: what went wrong in a job, with whom, on what ground.

import { byId, make } from "../base/dom.js";
import { counted, language, t } from "../base/i18n.js";
import { askDocument, askPayload } from "../base/questions.js";
import { onThemeChange, theme } from "../base/theme.js";
import { Waiting } from "../base/waiting.js";
import { WaitArrows } from "./arrows.js";
import { chainDrawing } from "./chain.js";
import { findingOf, sameFinding } from "./found.js";
import { LiveCase } from "./live.js";
import { EXAMPLE } from "./state.js";
import { Waits } from "./waits.js";
import { evidenceItems, findingCard, items } from "./words.js";

const SIDE_PIXELS = 16;
/** What a choice begins with that is the number of a run; no name of a file holds it. */
const RUN = "run/";

/** @typedef {import("./found.js").Case} Case */
/** @typedef {import("./state.js").DiagnoseState & {view: string}} DiagnoseState */
/**
 * @typedef {object} Undiagnosed  runs that are open
 * @property {{name: string, number: number}[]} undiagnosed  those that nobody has diagnosed
 * @property {(number: number) => unknown} diagnose
 */
/**
 * @template {{values: ArrayLike<number>, ramp(dark: boolean): string[]}} States  the states of
 *   ranks, as they colour the map
 * @typedef {object} DiagnoseHost  the page around the tab
 * @property {import("../base/store.js").Part<DiagnoseState>} store
 * @property {(change: DiagnoseState, shown: Case | null) => void} open  shows a diagnosis on its
 *   own layout
 * @property {(shown: Case) => boolean} isOwn  whether the map shows the layout of a diagnosis
 * @property {(sent: ArrayBuffer) => States} heatOf  reads the states of ranks that were sent
 * @property {(rank: number) => void} choose   pins a rank
 * @property {() => void} warmed               the map's colours have changed
 * @property {() => Undiagnosed} runs
 * @property {import("./arrows.js").Places} places   where ranks stand on the map
 */

/**
 * Holds the tab together; its state is the page's.
 * @template {{values: ArrayLike<number>, ramp(dark: boolean): string[]}} States
 */
export class DiagnoseDesk {
  /** @param {DiagnoseHost<States>} host */
  constructor(host) {
    this.host = host;
    /** @type {Case[]} */
    this.cases = [];
    /** The states of ranks that were sent last, and of what. */
    this.states = {
      of: "",
      heat: /** @type {States | null} */ (null),
      waits: /** @type {Waits | null} */ (null),
    };
    /** The example, once it was asked for. @type {Case | null} */
    this.example = null;
    this.arrows = new WaitArrows(host.places);
    this.live = new LiveCase({
      numberOf: (shown) => this.cases.indexOf(shown),
      renew: () => this.waiting.until(this._renew()),
    });
    /** How wide the chain was drawn, in em. */
    this.drawn = 0;
    this.waiting = new Waiting((error) => {
      console.error(error);
      byId("diagnose-verdict").textContent = t("error.server");
    });
    byId("diagnose-case").addEventListener("change", (event) => {
      const { value } = /** @type {HTMLSelectElement} */ (event.target);
      const number = Number(value.slice(RUN.length));
      if (value.startsWith(RUN)) this.host.runs().diagnose(number);
      else this.show(value, "");
    });
    document.addEventListener("spoken", () => this._tell());
    onThemeChange(() => this._tell());
    new ResizeObserver(() => {
      if (this.shown && chainRoom() !== this.drawn) this._tell();
    }).observe(byId("diagnose-section"));
  }

  get isBusy() {
    return this.waiting.isBusy || this.arrows.redraw.waiting;
  }

  /** The diagnosis that is in view. */
  get shown() {
    if (this.host.store.state.view !== "diagnose") return null;
    return this._named(this.host.store.state.diagnosed);
  }

  /** The diagnosis that the page opens with: the one that the address names, else the first. */
  get opening() {
    return this._named(this.host.store.state.diagnosed) ?? this.cases[0];
  }

  /** @param {string} diagnosed @returns {Case | null} */
  _named(diagnosed) {
    const served = this.cases.find(({ name }) => name === diagnosed);
    return served ?? (diagnosed === EXAMPLE ? this.example : null);
  }

  /** The states of ranks on the map, null where it shows another layout or no diagnosis. */
  get heat() {
    return this.shown && this.host.isOwn(this.shown) ? this.states.heat : null;
  }

  /** Asks which diagnoses there are. */
  async open() {
    this.cases = (await askDocument("cases")).cases;
  }

  /** Asks for the diagnoses again, and shows what is new of the one in view. */
  async _renew() {
    const { shown } = this;
    const { finding } = this.host.store.state;
    const isOwn = shown && this.host.isOwn(shown);
    await this.open();
    if (!shown || !this.shown) return;
    const kept = sameFinding(this.shown.in.en, findingOf(shown.in.en, finding));
    if (kept !== finding) this.host.store.set({ finding: kept });
    // More ranks may be known of by now than the map was drawn with.
    if (isOwn && !this.host.isOwn(this.shown)) this.show(this.shown.name, kept);
    else await this._take();
  }

  /** Shows the first diagnosis; false where there is none. */
  showFirst() {
    if (this.cases.length) this.show(this.cases[0].name);
    return this.cases.length > 0;
  }

  /** Shows what the state asks for. */
  async take() {
    await this.waiting.until(this._take());
  }

  async _take() {
    const { diagnosed, view } = this.host.store.state;
    if (view === "diagnose" && diagnosed === EXAMPLE && !this._named(diagnosed))
      this.example = await askDocument("case/example");
    const { shown } = this;
    for (const id of ["diagnose-section", "diagnose-told"]) byId(id).hidden = !shown;
    byId("absent").hidden ||= Boolean(shown);
    this.live.take(shown);
    this._tell();
    await this._ask();
  }

  /** Returns what to say of a rank, "" where no diagnosis is open. @param {number} rank */
  line(rank) {
    const value = this.heat?.values[rank] ?? NaN;
    return this.heat && !Number.isNaN(value) ? t(`wait_state.${value}`) : "";
  }

  /** Returns what the server finds a diagnosis by. @param {Case} shown */
  _number(shown) {
    return shown === this.example ? EXAMPLE : this.cases.indexOf(shown);
  }

  /** Asks for all of a diagnosis, in every language. @param {Case} shown */
  async whole(shown) {
    const { in: told } = await askDocument(`case/whole?case=${this._number(shown)}`);
    return /** @type {Record<string, import("./found.js").WholeDiagnosis>} */ (told);
  }

  /** Shows a diagnosis, and one of its findings. @param {string} name @param {string} [finding] */
  show(name, finding = "") {
    const shown = this._named(name);
    this.host.open({ view: "diagnose", diagnosed: name, finding }, shown);
  }

  /** Asks for the states of ranks under the finding in view. */
  async _ask() {
    const { shown } = this;
    const finding = this.host.store.state.finding || "0";
    const asked = shown ? `case=${this._number(shown)}&finding=${finding}` : "";
    const of = asked && `${asked} ${shown?.revision}`;
    if (of !== this.states.of) {
      const sent = of ? await askPayload(`case/states?${asked}`) : null;
      this.states = {
        of,
        heat: sent && this.host.heatOf(sent),
        waits: sent && new Waits(sent),
      };
    }
    this.host.warmed();
    this._tell();
  }

  /** Says the diagnosis in the language in use. */
  _tell() {
    const { shown } = this;
    if (!shown || !document.documentElement.dataset.spoken) return;
    this.live.show();
    const diagnosis = shown.in[language()] ?? shown.in.en;
    const finding = findingOf(diagnosis, this.host.store.state.finding);
    const [first, ...rest] = finding.summary ?? [finding.verdict];
    const lines = rest.map((line) => make("span", {}, line));
    const isOwn = this.host.isOwn(shown);
    byId("diagnose-verdict").replaceChildren(
      make("strong", {}, first),
      ...lines,
      ...(this.live.line.hidden ? [] : [this.live.line]),
      ...(isOwn ? [] : [this._otherLayout(shown)]),
    );
    const ramp = this.heat?.ramp(theme().dark) ?? [];
    this._draw(finding, ramp);
    fill("diagnose-why", items(finding.chain));
    fill("diagnose-cures", items(finding.cures));
    fill("diagnose-missing", items([...diagnosis.missing_evidence, ...diagnosis.notes]));
    // Where no rank is named, what is missing or odd is the answer.
    const missing = byId("diagnose-missing").closest("details");
    if (missing && !finding.ranks?.length) missing.open = true;
    fill("diagnose-evidence", evidenceItems(finding));
    const count = finding.evidence.length;
    byId("diagnose-quotes").textContent = counted("diagnose.evidence", count);
    this._offer(shown, diagnosis.findings);
    this.arrows.show(this.heat ? this.states.waits : null);
  }

  /** Returns why no rank is coloured, and what colours them. @param {Case} shown */
  _otherLayout(shown) {
    const { finding } = this.host.store.state;
    const again = () => this.show(shown.name, finding);
    const button = make("button", { type: "button", click: again }, t("diagnose.own_layout"));
    return make("span", { class: "other-layout" }, t("diagnose.other_layout"), " ", button);
  }

  /**
   * Draws who waits for whom, as wide as there is room.
   * @param {import("./found.js").Finding} finding
   * @param {string[]} ramp  the colours of ranks on the map, the culprits' last
   */
  _draw(finding, ramp) {
    const room = chainRoom();
    const choose = (/** @type {number} */ rank) => this.host.choose(rank);
    const drawing = chainDrawing(finding.drawing ?? [], ramp, choose, room);
    fill("diagnose-chain", drawing ? [drawing] : []);
    this.drawn = room;
  }

  /** @param {Case} shown @param {import("./found.js").Finding[]} findings */
  _offer(shown, findings) {
    const select = /** @type {HTMLSelectElement} */ (byId("diagnose-case"));
    const others = this.host.runs().undiagnosed;
    select.hidden = this.cases.length + others.length < 2;
    select.replaceChildren(
      ...this.cases.map(({ name }) => make("option", { value: name }, name)),
      ...others.map(({ name, number }) =>
        make("option", { value: `${RUN}${number}` }, t("diagnose.not_yet", { name })),
      ),
    );
    select.value = shown.name;
    const current = Number(this.host.store.state.finding) || 0;
    const cards = findings.map((found, at) =>
      findingCard(found, at === current, () => this.show(shown.name, at ? String(at) : "")),
    );
    fill("diagnose-findings", findings.length > 1 ? cards : []);
  }
}

/** Returns how wide a chain may be drawn, in em of its text. */
function chainRoom() {
  const section = byId("diagnose-section");
  const { fontSize } = getComputedStyle(section);
  const sides = 2 * SIDE_PIXELS;
  return Math.floor((section.clientWidth - sides) / parseFloat(fontSize));
}

/** Fills a list, and hides it with its heading where it is empty. */
/** @param {string} id @param {HTMLElement[]} children */
function fill(id, children) {
  const list = byId(id);
  list.replaceChildren(...children);
  const box = /** @type {HTMLElement} */ (list.closest("[data-part]") ?? list);
  box.hidden = !children.length;
}
