// Building and finding elements of the page, holding their height, and copying text out of it.

/**
 * Returns the element with an id; the page is broken without it.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (found);
}

/**
 * Makes an element; `properties` are attributes, and functions listen to the event they name.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function")
      element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (typeof value === "boolean") element.toggleAttribute(name, value);
    else element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * Opens what a control is folded into, so that it is seen; returns the control.
 * @template {HTMLElement} T
 * @param {T} control
 */
export function unfold(control) {
  const within = control.closest("details");
  if (within) within.open = true;
  return control;
}

/**
 * Keeps an element as high as it ever was while it tells `of` the same. A picture that shares its
 * height with what tells of it would change what it tells, and be laid out anew for ever.
 * @param {HTMLElement} element @param {string} of
 */
export function keepHeight(element, of) {
  if (element.dataset.of !== of) element.style.minHeight = "";
  element.dataset.of = of;
  element.style.minHeight = `${element.offsetHeight}px`;
}

/**
 * Copies text; true when the browser did. It needs no navigator.clipboard, which plain http
 * on a cluster's node does not have.
 * @param {string} text
 */
export function copyText(text) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const field = make("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus({ preventScroll: true });
  return done;
}
