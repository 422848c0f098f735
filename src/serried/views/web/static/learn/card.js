// A card as elements: what a word means, this job's numbers, its cost, mistakes, where to read on.

import { make } from "../base/dom.js";
import { t } from "../base/i18n.js";

/** @typedef {{heading: string, paragraphs: string[]}} Section */
/**
 * @typedef {object} Card  the document of `serried explain`
 * @property {string} key
 * @property {string} name
 * @property {string} title
 * @property {string} text
 * @property {string[]} here      this job's numbers
 * @property {string[]} cost
 * @property {Section[]} sections
 * @property {{title: string, url: string, lang: string}[]} reading
 * @property {string} [priced]    the plan that costs are of, "" for none
 * @property {string} [unplanned] why there is no plan, "" where there is one
 */
/**
 * @typedef {object} Lesson
 * @property {string} key
 * @property {string} title
 * @property {string} look     what to look at in the picture
 * @property {string} address  the part of the page's address behind the question mark
 * @property {Card} card
 */
/** @typedef {{key: string, name: string, title: string, also: string[], text: string}} Named */

/**
 * Returns the elements of a card.
 * @param {Card} card
 * @param {string} [look]  what to look at in the picture
 */
export function cardElements({ cost, here, priced, reading, sections, text, title }, look = "") {
  return [
    make("h3", {}, title),
    make("p", {}, text),
    ...(look ? [make("p", { class: "look" }, look)] : []),
    ...part(t("card.here"), here, "here"),
    ...part(priced ? t("card.cost_of", { plan: priced }) : t("card.cost"), cost, "estimated"),
    ...sections.flatMap(({ heading, paragraphs }) => [
      make("h4", {}, heading),
      ...paragraphs.map((each) => make("p", {}, each)),
    ]),
    ...links(reading),
  ];
}

/** @param {string} heading @param {string[]} lines @param {string} of */
function part(heading, lines, of) {
  if (!lines.length) return [];
  const items = lines.map((line) => make("li", {}, line));
  return [make("h4", {}, heading), make("ul", { class: of }, ...items)];
}

/** @param {Card["reading"]} reading */
function links(reading) {
  if (!reading.length) return [];
  const items = reading.map(({ lang, title, url }) =>
    make(
      "li",
      {},
      make("a", { href: url, hreflang: lang, target: "_blank", rel: "noreferrer" }, title),
    ),
  );
  return [make("h4", {}, t("explanation.reading")), make("ul", { class: "reading" }, ...items)];
}

/**
 * Returns the cards that a search means, the best first; all of them where it is empty.
 * @template {Named} N
 * @param {N[]} terms
 * @param {string} text
 * @returns {N[]}
 */
export function found(terms, text) {
  const wanted = plain(text);
  if (!wanted) return terms;
  const placed = terms.map((term) => ({ term, place: placeOf(term, wanted) }));
  return placed
    .filter(({ place }) => place < NOWHERE)
    .sort((one, other) => one.place - other.place)
    .map(({ term }) => term);
}

const NOWHERE = 4;

/** @param {Named} term @param {string} wanted */
function placeOf({ also, key, name, text, title }, wanted) {
  const names = [key, name, title, ...also].map(plain);
  if (names.includes(wanted)) return 0;
  if (names.some((each) => each.startsWith(wanted))) return 1;
  if (names.some((each) => each.includes(wanted))) return 2;
  return plain(text).includes(wanted) ? 3 : NOWHERE;
}

/** @param {string} text */
function plain(text) {
  return text.toLowerCase().replace(/[\s_\-:：()（）]+/g, "");
}
