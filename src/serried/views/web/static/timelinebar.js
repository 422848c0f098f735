// The bar above the timeline: which trace, whether it is emulated, its bubble, what colours mean.

import { byId, make } from "./dom.js";
import { has, number, t } from "./i18n.js";

/**
 * Shows what is known of the trace in view.
 * @param {import("./tracks.js").Tracks} tracks @param {string[]} names of all traces
 * @param {string} chosen number of the trace in view @param {boolean} isOwn whether the map shows its layout
 */
export function showTimelineBar(tracks, names, chosen, isOwn) {
  const select = /** @type {HTMLSelectElement} */ (byId("trace"));
  select.replaceChildren(...names.map((name, value) => make("option", { value }, name)));
  select.value = names[Number(chosen)] ? chosen : "0";
  select.hidden = names.length < 2;
  byId("emulated").hidden = tracks.job.compute !== "emulated";
  byId("own-layout").hidden = isOwn;
  showBubble(tracks);
  const used = [...tracks.actions.values()].filter((each) => tracks.kind.includes(each.number));
  const byColour = new Map(used.map((each) => [each.colour, used.filter(({ colour }) => colour === each.colour)]));
  const items = [...byColour].map(([colour, actions]) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = colour;
    swatch.classList.toggle("hatched", actions[0].name.startsWith("RECV"));
    const short = actions.length > 1 ? actions[0].name.split("_")[0] : actions[0].name;
    const meaning = actions.map(({ name }) => (has(`action.${name}`) ? t(`action.${name}`) : name)).join(" · ");
    return make("li", { title: meaning }, swatch, has(`short.${short}`) ? t(`short.${short}`) : short);
  });
  byId("actions").replaceChildren(...items);
  const notes = tracks.warnings.join(" · ");
  byId("warnings").hidden = !notes;
  byId("warnings").textContent = notes;
}

/** @param {import("./tracks.js").Tracks} tracks */
function showBubble({ statistics }) {
  const place = byId("bubble");
  const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(1)} %`;
  if (!statistics || statistics.bubble === null) {
    place.replaceChildren();
    return;
  }
  const parts = [make("b", {}, t("bubble.measured", { share: percent(statistics.bubble) }))];
  if (statistics.ideal !== null) parts.push(make("span", {}, t("bubble.ideal", { share: percent(statistics.ideal) })));
  place.replaceChildren(...parts);
  place.title = t("bubble.title", { steps: number(statistics.num_steps) });
}
