// An explanation as elements: its title, sections of paragraphs, and where to read on.

import { make } from "./dom.js";
import { t } from "./i18n.js";

/**
 * Returns the elements of an explanation.
 * @param {import("./scene.js").Explanation} explanation
 */
export function explained({ title, sections, reading }) {
  const texts = sections.flatMap(({ heading, paragraphs }) => [
    make("h4", {}, heading),
    ...paragraphs.map((text) => make("p", {}, text)),
  ]);
  const links = reading.map(({ title: name, url }) =>
    make("li", {}, make("a", { href: url, target: "_blank", rel: "noreferrer" }, name)),
  );
  return [
    make("h3", {}, title),
    ...texts,
    make("h4", {}, t("explanation.reading")),
    make("ul", {}, ...links),
  ];
}
