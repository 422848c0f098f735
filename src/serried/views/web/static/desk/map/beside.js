// Another layout beside the map: chosen, drawn in the same view, and what differs outlined in both.

import { byId, make } from "../../base/dom.js";
import { language, t } from "../../base/i18n.js";
import { litBy } from "../../base/lit.js";
import { readPayload } from "../../base/payload.js";
import { Refusal, askPayload } from "../../base/questions.js";
import { Scene } from "../../base/scene.js";

/** @typedef {import("../../map/view.js").MapView} MapView */
/** @typedef {import("../../base/lit.js").Target} Target */
/**
 * @typedef {object} Host
 * @property {() => {beside: string, arrange: string, cube: string, framework: string}} state
 * @property {() => {name: string, title: string}[]} frameworks
 * @property {() => string} question      the words of the layout in view
 * @property {() => string} job           those of its job alone
 * @property {(beside: string) => void} edit
 */

const OF_THE_PAGE = ["lang", "dims", "kind", "beside"];

/** Holds the layout beside. */
export class Beside {
  /**
   * @param {MapView} map
   * @param {MapView} other
   * @param {Host} host
   */
  constructor(map, other, host) {
    this.map = map;
    this.other = other;
    this.host = host;
    this.asked = "";
    /** @type {string[]} */
    this.told = [];
    this.titles = ["", ""];
    /** What is pointed at or pinned, for a layout that comes later. */
    this.lit = { target: /** @type {Target | null} */ (null), pinned: -1 };
    const select = /** @type {HTMLSelectElement} */ (byId("beside"));
    select.addEventListener("change", () =>
      host.edit(select.value === KEEP ? host.job() : select.value),
    );
  }

  /** Shows the layout that the state names, or none. */
  async take() {
    const { beside } = this.host.state();
    const asked = beside ? `${this.host.question()}&beside=${encodeURIComponent(beside)}` : "";
    this._offer();
    if (asked !== this.asked) await this._ask(asked);
    this._show();
  }

  /** Shows the other map as the first is moved. */
  follow() {
    if (this.other.scene) this.other.take(String(this.map));
  }

  /**
   * Lights in the other layout the rank that is pointed at or pinned, with its peers there.
   * @param {Target | null} target
   * @param {number} pinned
   */
  light(target, pinned) {
    this.lit = { target, pinned };
    const { scene } = this.other;
    if (scene) this.other.light(target?.type === "rank" ? litBy(scene, target) : null, pinned);
  }

  /** @param {string} asked */
  async _ask(asked) {
    this.asked = asked;
    if (!asked) return this._take(null, [], ["", ""], null);
    try {
      const { header, columns } = readPayload(await askPayload(`layout/beside?${asked}`));
      const words = new URLSearchParams();
      for (const [name, values] of Object.entries(header.question))
        for (const value of /** @type {string[]} */ (values)) words.append(name, value);
      const scene = new Scene(await askPayload(`layout?${words}`));
      if (asked !== this.asked) return undefined;
      const differs = /** @type {Uint8Array} */ (columns.get("differs"));
      return this._take(scene, header.told, header.titles, differs);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return asked === this.asked && this._take(null, [error.message], ["", ""], null);
    }
  }

  /**
   * @param {Scene | null} scene
   * @param {string[]} told
   * @param {string[]} titles
   * @param {Uint8Array | null} differs
   */
  _take(scene, told, titles, differs) {
    Object.assign(this, { told, titles });
    byId("beside-half").hidden = !scene;
    byId("map-pair").classList.toggle("paired", Boolean(scene));
    this.map.outline(differs);
    this.other.outline(differs);
    const { arrange, cube } = this.host.state();
    this.other.show(scene, { arrange, cube });
  }

  _show() {
    const { arrange, cube } = this.host.state();
    if (this.other.scene) {
      this.other.show(this.other.scene, { arrange, cube });
      this.other.warm(null, this.map.by);
      this.light(this.lit.target, this.lit.pinned);
      this.follow();
    }
    byId("beside-told").hidden = !this.told.length;
    byId("beside-told").textContent = this.told.join(language() === "zh" ? "；" : "; ");
    ["map-title", "beside-title"].forEach((id, i) => {
      byId(id).hidden = !this.titles[i];
      byId(id).textContent = this.titles[i];
    });
  }

  /** Fills the chooser: none, every other framework, the layout in view to be kept. */
  _offer() {
    const { beside, framework } = this.host.state();
    const select = byId("beside");
    const [own] = framework.split("@");
    const others = this.host.frameworks().filter(({ name }) => name !== own);
    const options = others.map(({ name, title }) =>
      make("option", { value: `framework=${name}` }, title),
    );
    const isKept = beside && !others.some(({ name }) => beside === `framework=${name}`);
    select.replaceChildren(
      make("option", { value: "" }, t("beside.none")),
      make("option", { value: KEEP }, t("beside.keep")),
      ...(isKept ? [make("option", { value: beside }, t("beside.kept"))] : []),
      ...options,
    );
    /** @type {HTMLSelectElement} */ (select).value = beside;
  }
}

const KEEP = "*";

/** Returns the words of a job alone. @param {string} question */
export function jobWords(question) {
  const words = new URLSearchParams(question);
  OF_THE_PAGE.forEach((word) => words.delete(word));
  return words.toString();
}
