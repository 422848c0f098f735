// The groups as text, as many lines as fit: 16,384 ranks make lists longer than a page can hold.

import { byId, make } from "../base/dom.js";
import { markImage } from "../base/canvas/marks.js";
import { css, inkOf, theme } from "../base/theme.js";

/** @typedef {import("../base/scene.js").Scene} Scene */
/** @typedef {{kind: number, group: number}} Line  group -1 heads the lines of a kind */

const LINE = 21;
const BEYOND = 6;
const MEMBERS_WRITTEN = 64;

/**
 * @typedef {object} ListEvents
 * @property {(kind: number, group: number) => void} hover  group -1 where there is none
 * @property {(kind: number, group: number) => void} pin
 * @property {(kind: number) => string} heading
 */

/** Lists groups, and makes only the lines in view. */
export class GroupList {
  /** @param {ListEvents} events */
  constructor(events) {
    this.events = events;
    this.list = byId("group-list");
    this.space = make("div", { class: "space" });
    this.list.replaceChildren(this.space);
    /** @type {Scene | null} */
    this.scene = null;
    /** Where the lines of each kind start. @type {number[]} */
    this.starts = [];
    this.numLines = 0;
    this.active = -1;
    /** The lines in view, by number. @type {Map<number, HTMLElement>} */
    this.made = new Map();
    /** @type {{kind: number, group: number} | null} */
    this.pinned = null;
    this.list.addEventListener("scroll", () => this._write());
    this.list.addEventListener("mousemove", (event) => this._hover(this._lineOf(event)));
    this.list.addEventListener("mouseleave", () => this._hover(-1));
    this.list.addEventListener("click", (event) => this._pin(this._lineOf(event)));
    this.list.addEventListener("keydown", (event) => this._key(event));
    this.list.addEventListener("blur", () => this._activate(-1));
    new ResizeObserver(() => this._write()).observe(this.list);
  }

  /** Lists the groups of a scene. @param {Scene | null} scene */
  show(scene) {
    this.scene = scene;
    this.starts = [];
    this.numLines = 0;
    this.active = -1;
    scene?.kinds.forEach((_, kind) => {
      this.starts.push(this.numLines);
      this.numLines += 1 + scene.numGroups(kind);
    });
    this.made.clear();
    this.space.replaceChildren();
    this.space.style.height = `${this.numLines * LINE}px`;
    this.list.scrollTop = 0;
    this._write();
  }

  /** Shows which group is pinned. @param {{kind: number, group: number} | null} group */
  mark(group) {
    this.pinned = group;
    this._write();
  }

  /** Returns all groups as text, a line each. */
  text() {
    const { scene } = this;
    if (!scene) return "";
    return scene.kinds
      .flatMap((_, kind) =>
        Array.from({ length: scene.numGroups(kind) }, (__, group) => scene.groupText(kind, group)),
      )
      .join("\n");
  }

  /** Returns all groups as the JSON that `serried groups --format json` writes. */
  json() {
    const { scene } = this;
    if (!scene) return "";
    const lists = scene.kinds.map(({ kind }, i) => {
      const groups = Array.from({ length: scene.numGroups(i) }, (_, group) => [
        ...scene.members(i, group),
      ]);
      return [kind, groups];
    });
    const { framework, world_size, sizes } = scene.job;
    return JSON.stringify({
      schema: "serried.groups/1",
      framework,
      world_size,
      sizes,
      groups: Object.fromEntries(lists),
    });
  }

  /** @param {number} number @returns {Line | null} */
  _line(number) {
    if (number < 0 || number >= this.numLines) return null;
    const kind = this.starts.findLastIndex((start) => start <= number);
    return { kind, group: number - this.starts[kind] - 1 };
  }

  /** @param {MouseEvent} event */
  _lineOf(event) {
    const { top } = this.list.getBoundingClientRect();
    return Math.floor((event.clientY - top + this.list.scrollTop) / LINE);
  }

  /** @param {number} number */
  _hover(number) {
    const line = this._line(number);
    if (line && line.group >= 0) this.events.hover(line.kind, line.group);
    else this.events.hover(-1, -1);
  }

  /** @param {number} number */
  _pin(number) {
    const line = this._line(number);
    if (line && line.group >= 0) this.events.pin(line.kind, line.group);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / LINE) - 1);
    const moves = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.numLines,
      End: this.numLines,
    };
    const by = /** @type {Record<string, number>} */ (moves)[event.key];
    if (by) {
      event.preventDefault();
      this._activate(Math.min(this.numLines - 1, Math.max(0, this.active + by)));
      this._hover(this.active);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this._pin(this.active);
    }
  }

  /** @param {number} number */
  _activate(number) {
    this.active = number;
    if (number < 0) this.events.hover(-1, -1);
    else {
      const top = number * LINE;
      const { scrollTop, clientHeight } = this.list;
      if (top < scrollTop) this.list.scrollTop = top;
      if (top + LINE > scrollTop + clientHeight) this.list.scrollTop = top + LINE - clientHeight;
    }
    this._write();
  }

  /**
   * Makes the lines that came into view and removes those that left it. The others stay the
   * elements they were: a click whose element goes between press and release is lost.
   */
  _write() {
    const { scene } = this;
    const first = Math.max(0, Math.floor(this.list.scrollTop / LINE) - BEYOND);
    const last = Math.min(
      this.numLines,
      first + Math.ceil(this.list.clientHeight / LINE) + 2 * BEYOND,
    );
    for (const [number, element] of this.made) {
      if (number >= first && number < last) continue;
      element.remove();
      this.made.delete(number);
    }
    /** @type {Element | null} */
    let next = null;
    for (let number = last - 1; scene && number >= first; number--) {
      let element = this.made.get(number);
      if (!element) {
        element = this._element(scene, number);
        this.made.set(number, element);
        this.space.insertBefore(element, next);
      }
      this._look(element, number);
      next = element;
    }
    if (this.active >= 0) this.list.setAttribute("aria-activedescendant", `line-${this.active}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  /**
   * Shows whether a line is the active one, and whether its group is pinned.
   * @param {HTMLElement} element
   * @param {number} number
   */
  _look(element, number) {
    const { kind, group } = /** @type {Line} */ (this._line(number));
    element.className = number === this.active ? "line active" : "line";
    if (group < 0) return;
    const pinned = this.pinned?.kind === kind && this.pinned.group === group;
    element.setAttribute("aria-selected", String(pinned));
  }

  /** @param {Scene} scene @param {number} number */
  _element(scene, number) {
    const { kind, group } = /** @type {Line} */ (this._line(number));
    const look = scene.kinds[kind];
    const place = { id: `line-${number}` };
    let element;
    if (group < 0) {
      const mark = markImage(look.mark, inkOf(look, theme()), 12);
      element = make(
        "div",
        { ...place, role: "presentation" },
        mark,
        make("b", {}, this.events.heading(kind)),
      );
    } else {
      const members = scene.members(kind, group);
      const more = members.length > MEMBERS_WRITTEN ? ", …" : "";
      const written = members.subarray(0, MEMBERS_WRITTEN).join(", ");
      const text = `${look.label} ${group}: [${written}${more}]`;
      element = make(
        "div",
        { ...place, role: "option" },
        markImage(look.mark, css(look.colour[group]), 12),
        make("span", {}, text),
      );
    }
    element.style.top = `${number * LINE}px`;
    return element;
  }
}
