// Where the player of collectives is opened: beside a group that is selected, and under Learn.

import { byId, make } from "../../base/dom.js";
import { t } from "../../base/i18n.js";
import { showPlays } from "../../collective/plays.js";
import { groupOf, usualFor } from "../../collective/state.js";

/** @typedef {import("../../collective/state.js").CollectiveState} CollectiveState */
/**
 * @typedef {object} Host
 * @property {import("../../base/store.js").Part<CollectiveState>} store
 * @property {() => string[]} collectives  that can be played
 * @property {() => import("../../collective/plays.js").PlayGroup[]} groups  of the job, one of each
 *   kind in view
 * @property {() => boolean} isPlanned  whether a plan of the job is in view
 * @property {() => void} opened  the player is opened, in place of other panels
 */
/** @typedef {{take(): Promise<unknown>}} Player */

/** Opens the player, whose module is fetched only then, and turns it to what is selected. */
export class Collectives {
  /** @param {Host} host @param {Player} player */
  constructor(host, player) {
    this.host = host;
    this.player = player;
  }

  get isOpen() {
    const { collective, collective_of: of } = this.host.store.state;
    return Boolean(collective && groupOf(of));
  }

  /**
   * Offers the player beside what is told of a group, unless it shows that group.
   * @param {string} dim
   * @param {string} group  KIND:RANK
   */
  offer(dim, group) {
    const open = () => this._open(usualFor(dim), group);
    const button = make("button", { type: "button", id: "collective-open", click: open });
    button.textContent = t("collective.open");
    byId("collective-offer").replaceChildren(...(this.isOpen ? [] : [button]));
  }

  /** Turns an open player to a group. @param {string} group  KIND:RANK */
  follow(group) {
    const { store } = this.host;
    if (this.isOpen && group !== store.state.collective_of)
      this._edit({ collective_of: group, step: "" });
  }

  /** Shows what the state asks for. */
  async take() {
    if (this.isOpen) document.getElementById("collective-open")?.remove();
    showPlays(this.host.collectives(), this.host.groups(), (name, group) =>
      this._open(name, group),
    );
    await this.player.take();
  }

  /** @param {string} collective @param {string} group */
  _open(collective, group) {
    const { host } = this;
    host.opened();
    const priced = host.isPlanned() ? "plan" : "";
    const how = { algorithm: "", split: "", mask: "", step: "" };
    this._edit({ collective, collective_of: group, priced, ...how });
  }

  /** @param {Partial<CollectiveState>} change */
  _edit(change) {
    this.host.store.step(change);
    void this.take();
  }
}
