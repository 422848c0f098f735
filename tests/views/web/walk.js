// Walks the controls of the page as a user would, and tells which of them change no answer.
({
  /** Shows the state of an address's search part, without loading the page again. */
  async go(search) {
    history.replaceState(null, "", search);
    dispatchEvent(new PopStateEvent("popstate"));
    await serried.settled();
  },

  /** Returns what is shown beside the form: text, and pictures once the text is the same. */
  said: () =>
    [...document.querySelectorAll("#headline, #centre, #right, #kinds")]
      .map((each) => each.textContent)
      .join("\n") + JSON.stringify(serried.groups()),

  drawn: () =>
    [...document.querySelectorAll("canvas")]
      .filter((each) => each.checkVisibility())
      .map((each) => each.toDataURL())
      .join("\n"),

  set(control, value) {
    if (control.type === "checkbox" || control.tagName === "BUTTON") return control.click();
    control.value = value;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    control.dispatchEvent(new Event("change", { bubbles: true }));
  },

  /** Returns what to try a control with; it is alive when any is taken and changes something. */
  trials(control) {
    if (control.tagName === "SELECT")
      return [...control.options].filter((each) => !each.selected).map(({ value }) => value);
    if (control.id === "set") return ["nonsense=1"];
    if (control.id === "order") {
      const sign = control.placeholder.includes("-") ? "-" : ",";
      return [control.placeholder.split(sign).reverse().join(sign)];
    }
    if (control.tagName === "INPUT" && control.type !== "checkbox")
      return ["2", "8", "1", "3"].filter((each) => each !== control.value);
    return [null];
  },

  /** Whether a control that was tried changed what the page shows, and was not refused. */
  async isAlive(control, before) {
    await serried.settled();
    const refused = document.getElementById("alert").textContent;
    if (refused) return control.id === "set" && refused !== before.refused;
    return this.said() !== before.said || this.drawn() !== before.drawn;
  },

  /** Walks the form of the job in each of some states; a control need be alive in one of them. */
  async form(searches) {
    const wait = window.setTimeout;
    window.setTimeout = (act, after, ...rest) => wait(act, after > 1000 ? after : 0, ...rest);
    const walked = new Set();
    const dead = new Set();
    try {
      for (const search of searches) {
        await this.go(search);
        for (const each of ["others", "more"]) document.getElementById(each).open = true;
        if (search === searches[0]) await this.boxes(search, walked, dead);
        const before = { said: this.said(), drawn: this.drawn(), refused: "" };
        for (const key of this.keys()) {
          if (walked.has(key) && !dead.has(key)) continue;
          walked.add(key);
          if (await this.lives(key, search, before)) dead.delete(key);
          else dead.add(key);
        }
        await this.go(search);
      }
    } finally {
      window.setTimeout = wait;
    }
    return { walked: [...walked], dead: [...dead] };
  },

  /** Checks the boxes of all other kinds of groups, each of which then has its groups in view. */
  async boxes(search, walked, dead) {
    const boxes = [...document.querySelectorAll("#kinds input")];
    boxes.forEach((each) => each.click());
    await serried.settled();
    const groups = serried.groups();
    for (const { value } of boxes) {
      walked.add(`kind ${value}`);
      if (!(value in groups)) dead.add(`kind ${value}`);
    }
    await this.go(search);
  },

  /** Names the controls in view, so that one is found again after the form was filled anew. */
  keys: () =>
    [...document.querySelectorAll("#job :is(input, select, textarea, button:not(#reset))")]
      .filter((each) => each.checkVisibility() && !each.disabled && each.id !== "framework")
      .filter((each) => each.type !== "checkbox")
      .map((each) => (each.id ? `#${each.id}` : `[data-dim="${each.dataset.dim}"]`)),

  find: (key) => document.querySelector(key),

  async lives(key, search, before) {
    for (const value of this.trials(this.find(key))) {
      // The form is as it was at once; what is asked for that is put off by the next question.
      void this.go(search);
      this.set(this.find(key), value);
      if (await this.isAlive(this.find(key), before)) return true;
    }
    return false;
  },
})
