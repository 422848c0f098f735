// The head of each stacked schedule: its name, its numbers by name, and the forms that are exact.

import { byId, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { aboutText } from "./form.js";
import { measuredAbout } from "./measured.js";
import { blockTitle, formTexts, refusalTexts, refusedBy, scheduleFacts } from "./words.js";

/** @typedef {import("./model/simulated.js").Simulated} Simulated */

/**
 * Shows a head for each schedule.
 * @param {string[]} names
 * @param {(Simulated | null)[]} blocks
 * @param {Map<string, import("./form.js").Fault>} faults
 * @param {string[]} runs the names of the traces
 */
export function showHeads(names, blocks, faults, runs) {
  const heads = names.map((name, place) => {
    const data = blocks[place];
    const fault = faults.get(name);
    const called = blockTitle(name, data, runs);
    const badge = data?.isMeasured ? [make("strong", { class: "badge" }, t("measured.badge"))] : [];
    if (data?.header.findings?.length)
      badge.push(
        make(
          "strong",
          { class: "badge", title: refusalTexts(data).join("\n") },
          t("head.refused", { packages: refusedBy(data) }),
        ),
      );
    const title = make(
      "h3",
      {},
      called,
      ...badge,
      make("small", {}, data?.isMeasured ? measuredAbout(data) : aboutText(name)),
    );
    const facts = data ? scheduleFacts(data) : [];
    const [makespan, ...numbers] = facts.map((fact) =>
      make(
        "span",
        { title: fact.title, class: fact.before ? "first" : "" },
        fact.before && `${fact.before} `,
        make("b", {}, fact.value),
        ` ${fact.after}`,
      ),
    );
    if (makespan) title.append(makespan);
    const forms = data ? formTexts(data) : [];
    const note = fault
      ? make(
          "p",
          { class: "fault" },
          data ? t("head.kept", { sentence: fault.sentence }) : fault.sentence,
        )
      : make(
          "p",
          { class: "forms", title: forms.join("\n") },
          forms.length ? `${t("form.title")} ${forms.join(" · ")}` : "",
        );
    return make(
      "section",
      { class: fault ? "head stale" : "head", "aria-label": called },
      title,
      make("p", { class: "numbers" }, ...numbers),
      note,
    );
  });
  byId("schedule-heads").replaceChildren(...heads);
}

/** Moves the heads to where their blocks stand. @param {import("./model/stack.js").Stack} stack */
export function placeHeads(stack) {
  byId("schedule-stack").style.height = `${stack.height}px`;
  [...byId("schedule-heads").children].forEach((head, place) => {
    if (stack.blocks[place] && head instanceof HTMLElement)
      head.style.top = `${stack.blocks[place].top}px`;
  });
}
