// The tour: a few stops on the real page, each a state of it with one thing pointed out in words.

import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { EXAMPLE } from "../diagnose/state.js";

/**
 * @typedef {object} Stop
 * @property {string} name     of its words: tour.NAME and tour.NAME_text
 * @property {string} address  the state that it shows
 * @property {string} target   what it points at
 */

/** @type {readonly Stop[]} */
export const STOPS = Object.freeze([
  { name: "map", address: "view=layout", target: "#map-frame" },
  { name: "peers", address: "view=layout&rank=5", target: "#right" },
  { name: "form", address: "view=layout&tp=4&pp=2", target: "#job" },
  { name: "schedule", address: "view=schedule", target: "#schedule-frame" },
  {
    name: "plan",
    address: "view=plan&world_size=64&tp=8&pp=4&model=llama3-70b&global_batch=128",
    target: "#plan-section",
  },
  { name: "run", address: "view=run", target: "#view-run" },
  {
    name: "diagnose",
    address: `view=diagnose&world_size=8&tp=2&pp=2&order=tp-dp-pp&diagnosed=${EXAMPLE}`,
    target: "#diagnose-told",
  },
  { name: "start", address: "view=layout", target: "#launch-open" },
]);

const AWAY = 16;

/** Walks through the stops; what was shown before comes back in the end. */
export class Tour {
  /** @param {(search: string) => Promise<unknown>} visit */
  constructor(visit) {
    this.visit = visit;
    this.at = -1;
    this.before = "";
    byId("tour-open").addEventListener("click", () => this.start());
    byId("tour-next").addEventListener("click", () => this._go(this.at + 1));
    byId("tour-back").addEventListener("click", () => this._go(this.at - 1));
    byId("tour-end").addEventListener("click", () => this.end());
    byId("tour").addEventListener("keydown", (event) => this._key(event));
    byId("tour").addEventListener("cancel", () => this._leave());
    const moved = new ResizeObserver(() => this._place());
    for (const part of ["centre", "right", "schedule-section", "diagnose-told"])
      moved.observe(byId(part));
    document.addEventListener("spoken", () => this._say());
  }

  /** Starts at the first stop. */
  start() {
    this.before = location.search;
    box().show();
    void this._go(0);
  }

  /** Ends it, and shows again what was shown before. */
  end() {
    this._leave();
    void this.visit(this.before);
    byId("tour-open").focus();
  }

  _leave() {
    this.at = -1;
    box().close();
    byId("tour-ring").hidden = true;
  }

  /** @param {number} at */
  async _go(at) {
    if (at >= STOPS.length) return this.end();
    this.at = Math.max(0, at);
    await this.visit(STOPS[this.at].address);
    this._say();
    this._place();
    return byId("tour-next").focus();
  }

  _say() {
    if (this.at < 0) return;
    const { name } = STOPS[this.at];
    byId("tour-title").textContent = t(`tour.${name}`);
    byId("tour-text").textContent = t(`tour.${name}_text`);
    byId("tour-count").textContent = `${this.at + 1} / ${STOPS.length}`;
    byId("tour-next").textContent = t(this.at + 1 < STOPS.length ? "tour.next" : "tour.done");
    byId("tour-back").toggleAttribute("disabled", this.at === 0);
  }

  /** Puts the words beside what they are about, and a ring around that. */
  _place() {
    if (this.at < 0) return;
    const target = document.querySelector(STOPS[this.at].target);
    const { left, top, right, bottom } = (target ?? document.body).getBoundingClientRect();
    Object.assign(byId("tour-ring").style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${right - left}px`,
      height: `${bottom - top}px`,
    });
    byId("tour-ring").hidden = right === left;
    const { offsetWidth: width, offsetHeight: height } = box();
    const beside = right + AWAY + width < innerWidth ? right + AWAY : left - AWAY - width;
    const x = beside > AWAY ? beside : right - AWAY - width;
    const y = beside > AWAY ? top : bottom - AWAY - height;
    box().style.left = `${Math.min(Math.max(AWAY, x), innerWidth - width - AWAY)}px`;
    box().style.top = `${Math.min(Math.max(AWAY, y), innerHeight - height - AWAY)}px`;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key === "Escape") this.end();
    else if (event.key === "ArrowRight") void this._go(this.at + 1);
    else if (event.key === "ArrowLeft") void this._go(this.at - 1);
    else return;
    event.preventDefault();
  }
}

/** @returns {HTMLDialogElement} */
function box() {
  return /** @type {HTMLDialogElement} */ (byId("tour"));
}
