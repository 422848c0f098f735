// Walks the controls of a part of the page as a user would, and tells what became of each.
({
  /** What is typed into a field, by its name; a field without an entry fails the walk. */
  typed: {},

  /** Arrives at a situation: its address, and what is clicked there before the walk. */
  async arrive({ search, steps = [] }) {
    document.querySelectorAll("dialog[open]").forEach((each) => each.close());
    this.press(document.body, "Escape");
    history.replaceState(null, "", search);
    dispatchEvent(new PopStateEvent("popstate"));
    await serried.settled();
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const [selector, value] of steps) {
      const all = [...document.querySelectorAll(selector)];
      const found = all.find((each) => each.checkVisibility());
      if (!found) throw new Error(`${selector} is not in view at ${search}`);
      if (value === undefined) found.click();
      else if (value.startsWith("key ")) this.press(found, value.slice(4));
      else this.type(found, value);
      await serried.opened();
    }
    document.activeElement?.blur();
    this.home = {
      search: location.search,
      said: this.said(),
      drawn: this.drawn(),
      faults: this.faults(),
    };
  },

  /** Arrives at a situation where the page is elsewhere. */
  async keep(situation) {
    if (this.said() !== this.home?.said) await this.arrive(situation);
  },

  /** Returns what the page shows: its words in view, and which parts are there. */
  said: () =>
    location.search +
    document.body.innerText +
    document.activeElement?.id +
    [...document.querySelectorAll("[id], dialog")]
      .map((each) => (each.checkVisibility() ? "1" : "0"))
      .join("") +
    [...document.querySelectorAll("progress, [style*=left], [style*=width], [style*=height]")]
      .map((each) => each.getAttribute("style"))
      .join(),

  /** Returns a number of all pictures in view, which changes with any pixel. */
  drawn() {
    let sum = 0;
    for (const canvas of document.querySelectorAll("canvas")) {
      if (!canvas.width || !canvas.height || !canvas.checkVisibility()) continue;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const words = new Uint32Array(data.buffer);
      for (let i = 0; i < words.length; i++) sum = (Math.imul(sum, 31) + words[i]) | 0;
    }
    return sum;
  },

  faults: () =>
    [...document.querySelectorAll("[role=alert], .fault")]
      .filter((each) => each.checkVisibility())
      .map((each) => each.textContent.trim())
      .filter(Boolean),

  CONTROLS:
    "button, input, select, textarea, summary, a[href], canvas[tabindex], [role=separator]," +
    "[role=listbox], [role=option]",

  /** Names a control so that it is found again after its part of the page was made anew. */
  nameOf(control) {
    if (control.id && !/-\d+$/.test(control.id)) return `#${control.id}`;
    const within = control.parentElement.closest("[id]");
    const words = ["dim", "form", "word", "kind", "cost", "export"]
      .filter((word) => control.dataset[word])
      .map((word) => `[data-${word}="${control.dataset[word]}"]`);
    const type = control.tagName === "INPUT" ? `[type="${control.type}"]` : "";
    const classes = [...control.classList].map((each) => `.${each}`).join("");
    const name = control.name ? `[name="${control.name}"]` : "";
    const tag = control.tagName.toLowerCase();
    return `#${within.id} ${tag}${classes}${type}${name}${words.join("")}`;
  },

  /** Returns the controls that can be used now, by name; of a row of the same, the first. */
  controls(within) {
    const dialog = document.querySelector("dialog:modal");
    const found = new Map();
    for (const control of (dialog ?? document.body).querySelectorAll(this.CONTROLS)) {
      if (!control.closest(within)) continue;
      if (control.disabled || !control.checkVisibility({ visibilityProperty: true })) continue;
      if (control.matches("[aria-current], [aria-selected=true]:not([role=option])")) continue;
      const name = this.nameOf(control);
      if (!found.has(name)) found.set(name, control);
    }
    return found;
  },

  press(target, key) {
    for (const type of ["keydown", "keyup"])
      target.dispatchEvent(new KeyboardEvent(type, { key, bubbles: true, cancelable: true }));
  },

  type(control, value) {
    control.focus();
    control.value = value;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    control.dispatchEvent(new Event("change", { bubbles: true }));
  },

  /** Returns the ways to use a control, null where the walk knows none. */
  uses(name, control) {
    const click = () => control.click();
    if (control.matches("a[href]")) return [];
    if (control.matches("canvas")) return [() => (control.focus(), this.press(control, "w"))];
    if (control.matches("[role=separator]"))
      return [() => (control.focus(), this.press(control, "ArrowUp"))];
    if (control.matches("[role=listbox]"))
      return [() => (control.focus(), this.press(control, "ArrowDown"))];
    if (control.matches("[role=option]"))
      return [
        () => {
          const { left, top } = control.getBoundingClientRect();
          const at = { clientX: left + 9, clientY: top + 9, bubbles: true };
          control.dispatchEvent(new MouseEvent("click", at));
        },
      ];
    if (control.matches("button, summary, [type=checkbox], [type=radio]")) return [click];
    if (control.matches("select"))
      return [...control.options]
        .filter((each) => !each.selected && !each.disabled)
        .map(
          ({ value }) =>
            () =>
              this.type(control, value),
        );
    if (control.matches("[type=range]"))
      return [control.max, control.min].map((value) => () => this.type(control, value));
    const typed = this.typed[name];
    return typed ? typed.map((value) => () => this.type(control, value)) : null;
  },

  /** Tells whether a use of a control changes what is shown, and is not refused. */
  async isAlive(name, situation, within) {
    const count = this.uses(name, this.controls(within).get(name)).length;
    for (let i = 0; i < count; i++) {
      await this.keep(situation);
      const control = this.controls(within).get(name);
      if (!control) return false;
      const { faults } = this.home;
      this.chosen = false;
      this.uses(name, control)[i]();
      await serried.opened();
      const isRefused = this.faults().some((each) => !faults.includes(each));
      if (isRefused && name !== "#set") continue;
      // What is played shows it by its next frames, as long as they come.
      do {
        if (this.isOther()) return true;
        await new Promise(requestAnimationFrame);
      } while (document.querySelector("[data-playing=true]"));
    }
    return false;
  },

  /** Tells whether the page shows anything else than at home, a new address alone left aside. */
  isOther() {
    if (this.chosen) return true;
    const here = this.said().slice(location.search.length);
    if (here !== this.home.said.slice(this.home.search.length)) return true;
    if (this.drawn() === this.home.drawn) return false;
    this.home = null;
    return true;
  },

  /**
   * Walks the controls of a room in some situations; one need be alive in only one of them.
   * What is in view and in none of the `others` belongs to no room.
   */
  async room({ situations, typed, within }, others) {
    this.typed = typed;
    const wait = window.setTimeout;
    window.setTimeout = (act, after, ...rest) => wait(act, after > 1000 ? after : 0, ...rest);
    const choosers = (event) => {
      if (!event.target.matches("input[type=file]")) return;
      event.preventDefault();
      this.chosen = true;
    };
    document.addEventListener("click", choosers, true);
    const walked = {};
    try {
      for (const situation of situations) {
        await this.arrive(situation);
        for (const [name, control] of this.controls("body"))
          if (!control.closest(others)) walked[name] ??= "in no room";
        for (const name of this.controls(within).keys())
          if (walked[name] !== "alive") walked[name] = await this.walk(name, situation, within);
      }
      await this.arrive({ search: situations[0].search });
    } finally {
      window.setTimeout = wait;
      document.removeEventListener("click", choosers, true);
    }
    return walked;
  },

  /** Returns the rooms that hold each control of the page which has a name of its own. */
  homes: (rooms, controls) =>
    Object.fromEntries(
      [...document.querySelectorAll(controls)]
        .filter((each) => each.id && !/-\d+$/.test(each.id))
        .map((each) => [each.id, Object.keys(rooms).filter((name) => each.closest(rooms[name]))]),
    ),

  /** Returns what became of a control that was walked. */
  async walk(name, situation, within) {
    await this.keep(situation);
    const control = this.controls(within).get(name);
    if (!control) return "gone";
    if (control.matches("a[href]"))
      return /^https?:/.test(control.getAttribute("href")) ? "alive" : "leads nowhere";
    if (!this.uses(name, control)) return "the walk does not know how to use it";
    const isAlive = await this.isAlive(name, situation, within);
    // Columns are not in the address.
    const isFolded = control.matches("[aria-expanded]:not(#right-toggle)");
    if (isFolded && control.isConnected) control.click();
    return isAlive ? "alive" : "dead";
  },
})
