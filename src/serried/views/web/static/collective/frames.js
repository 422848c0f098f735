// Numbered frames: every step beside the next, for those who want no motion, or a page to print.

import { make } from "../base/dom.js";
import { duration } from "../base/clock.js";
import { number, t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { paintExecution } from "./picture.js";
import { pageOf } from "./state.js";
import { linkText, titleOf } from "./words.js";

/** @typedef {import("./execution.js").Execution} Execution */

/** How far along its way what travels is drawn. */
const HALFWAY = 0.5;
const SIZE = { width: 232, height: 172 };

/** Shows the steps of executions as frames. */
export class Frames {
  /** @param {HTMLElement} element @param {(execution: number, step: number) => void} choose */
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.drawn = "";
    this.watch = new IntersectionObserver((seen) => this._paint(seen), { root: element });
    /** What is to be drawn on each canvas. @type {Map<Element, () => void>} */
    this.awaited = new Map();
  }

  /**
   * Draws the frames anew where others are to be seen, and marks those of the moment.
   * @param {Execution[]} executions
   * @param {number[]} steps  done, of each
   * @param {string} what     changes when anything else of the pictures does
   */
  show(executions, steps, what) {
    const now = steps.map((done) => Math.floor(done + 1e-9));
    const pages = executions.map((each, i) => pageOf(each.numSteps, now[i]));
    const drawn = [what, ...pages.map(({ first }) => first)].join(" ");
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.watch.disconnect();
      this.awaited.clear();
      this.element.replaceChildren(
        ...executions.flatMap((each, i) => this._list(each, i, pages[i])),
      );
    }
    for (const frame of this.element.querySelectorAll("button")) {
      const isNow = now.some((step, i) => frame.dataset.step === `${i}:${step}`);
      if (isNow !== (frame.getAttribute("aria-current") === "step")) {
        if (isNow) frame.setAttribute("aria-current", "step");
        else frame.removeAttribute("aria-current");
        if (isNow) frame.scrollIntoView({ block: "nearest" });
      }
    }
  }

  /**
   * @param {Execution} execution
   * @param {number} place
   * @param {{first: number, end: number}} page
   */
  _list(execution, place, { first, end }) {
    const frames = Array.from({ length: end - first }, (_, i) =>
      make("li", {}, this._frame(execution, place, first + i)),
    );
    return [make("h3", {}, titleOf(execution)), make("ol", { start: first + 1 }, ...frames)];
  }

  /** @param {Execution} execution @param {number} place @param {number} step */
  _frame(execution, place, step) {
    const canvas = make("canvas", { "aria-hidden": "true" });
    canvas.style.aspectRatio = `${SIZE.width} / ${SIZE.height}`;
    this.awaited.set(canvas, () => paintFrame(canvas, execution, step));
    this.watch.observe(canvas);
    const told = t("collective.frame", {
      step: number(step + 1),
      bytes: bytesText(execution.stepBytes[step]),
      link: linkText(execution.links(step)),
      time: duration(execution.seconds[step] * 1e9),
    });
    return make(
      "button",
      { type: "button", "data-step": `${place}:${step}`, click: () => this.choose(place, step) },
      canvas,
      make("span", {}, told),
    );
  }

  /** @param {IntersectionObserverEntry[]} seen */
  _paint(seen) {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      this.awaited.get(target)?.();
      this.awaited.delete(target);
      this.watch.unobserve(target);
    }
  }
}

/** @param {HTMLCanvasElement} canvas @param {Execution} execution @param {number} step */
function paintFrame(canvas, execution, step) {
  const density = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || SIZE.width;
  const height = (width * SIZE.height) / SIZE.width;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(density, 0, 0, density, 0, 0);
  paintExecution(context, execution, step + HALFWAY, { width, height });
}
