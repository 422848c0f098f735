// Why the selected span began when it did, in the panel of what is selected: for whom its rank
// waited, how long, and what had made that one late.

import { byId, make } from "../base/dom.js";
import { language, t } from "../base/i18n.js";
import { Refusal, askDocument } from "../base/questions.js";

/** @typedef {{lines: Record<string, string[]>, way: Record<string, string[]>}} Gap */

/** Asks Python why spans began when they did. */
export class WhyDesk {
  /** @param {import("./state.js").Host} host */
  constructor(host) {
    this.host = host;
    /** What was answered last. @type {{asked: string, gap: Gap | null}} */
    this.known = { asked: "", gap: null };
    this.asked = 0;
  }

  get isBusy() {
    return this.asked > 0;
  }

  /** Adds to what is said of the selected span what its rank waited for. @param {number} span */
  async show(span) {
    const { host } = this;
    const asked = `trace/why?trace=${host.trace}&slice=${span}`;
    if (host.tracks?.isPlanned) return;
    if (this.known.asked !== asked) await this._ask(asked);
    const { pinned } = host;
    const { gap } = this.known;
    const isHere = this.known.asked === asked && pinned?.type === "slice" && pinned.slice === span;
    if (!gap || !isHere) return;
    const place = byId("selected").querySelector("div");
    place?.querySelector(".why")?.remove();
    const lines = gap.lines[language()] ?? [];
    place?.append(
      make(
        "section",
        { class: "why" },
        make("h4", {}, t("begun.title")),
        ...lines.slice(0, 1).map((line) => make("p", {}, line)),
        make("ul", {}, ...(gap.way[language()] ?? []).map((line) => make("li", {}, line))),
      ),
    );
  }

  /** @param {string} asked */
  async _ask(asked) {
    this.asked++;
    try {
      const { gap } = await askDocument(asked);
      this.known = { asked, gap };
    } catch (error) {
      // A span that is not there is said where it is pinned.
      if (!(error instanceof Refusal)) this.host.fail(error);
    } finally {
      this.asked--;
    }
  }
}
