// Launch files that were read: asked about, shown in the form, and remembered while one steps back.

import { byId } from "../../base/dom.js";
import { language, t } from "../../base/i18n.js";
import { Refusal, ask } from "../../base/questions.js";
import { withJob, withTraining } from "../state/fields.js";
import { framed, launchQuestion, readFiles } from "./files.js";
import { blameAsked, hideReading, markChanged, showReading } from "./panel.js";

/** @typedef {import("../state/fields.js").State} State */
/**
 * @typedef {object} Page  the page, as far as launch files need it
 * @property {import("../../base/store.js").Store<State>} store
 * @property {import("../../base/waiting.js").Waiting} waiting
 * @property {import("../../base/scene.js").PageWords | null} words
 * @property {(change: Partial<State>) => void} edit
 * @property {(sentence: string) => void} complain
 */
/** @typedef {import("./files.js").LaunchFile} LaunchFile */
/** @typedef {import("./files.js").Answers} Answers */
/** @typedef {import("./panel.js").Told} Told */
/**
 * @typedef {{files: LaunchFile[], answers: Answers, told: Told, opened: number}} Reading  `opened`
 *   is the number under which the server holds the files, -1 where this page does
 */

const REMEMBERED = 12;

/** Holds the readings of this visit; nothing of them outlives the page. */
export class Launch {
  /**
   * @param {Page} page
   * @param {() => Promise<void>} opened  kept once the page has shown what its address holds
   */
  constructor(page, opened) {
    this.page = page;
    this.opened = opened;
    /** @type {Map<string, Reading>} */
    this.readings = new Map();
    /** The reading in view, as the browser's history marks it; "" for none. */
    this.mark = "";
    this.asked = 0;
  }

  /**
   * Reads files, and shows their job or asks for what is missing.
   * @param {File[] | Promise<File[]>} files
   */
  takeFiles(files) {
    void this.page.waiting.until(this._shown().then(() => this._read(files)));
  }

  /** Reads a text as a file. @param {LaunchFile} file */
  takeText(file) {
    void this.page.waiting.until(this._shown().then(() => this._ask([file], {})));
  }

  /** Reads files that the server holds already. @param {number} opened */
  takeOpened(opened) {
    void this.page.waiting.until(this._ask([], {}, opened));
  }

  /** Gives what was missing. @param {Answers} answers */
  answer(answers) {
    const reading = this.readings.get(this.mark);
    if (reading)
      void this.page.waiting.until(
        this._ask(reading.files, { ...reading.answers, ...answers }, reading.opened),
      );
  }

  /** Says the reading in view again, in the page's language. */
  async retell() {
    const reading = this.readings.get(this.mark);
    if (!reading) return;
    const { answers, files, opened } = reading;
    reading.told = await askLaunch(language(), answers, files, opened);
    this._show();
  }

  /** Shows the reading that a step of history is marked with. @param {unknown} mark */
  recall(mark) {
    this.mark = typeof mark === "string" && this.readings.has(mark) ? mark : "";
    this._show();
  }

  /** Takes the reading out of view. */
  forget() {
    this.recall("");
  }

  /** Takes the reading away, so that going back and forth does not bring it here again. */
  close() {
    this.forget();
    this.page.store.write();
  }

  /** Marks what the form no longer holds as the file says it. */
  compare() {
    const { job, training = {} } = this.readings.get(this.mark)?.told ?? {};
    const { state } = this.page.store;
    if (job) markChanged(state, withTraining(withJob(state, job), training));
  }

  /** Waits until the page shows its address, and turns it to the job, where files are told of. */
  async _shown() {
    await this.opened();
    if (this.page.store.state.view !== "plan") byId("view-layout").click();
  }

  /** @param {File[] | Promise<File[]>} chosen */
  async _read(chosen) {
    let files;
    try {
      files = await readFiles(await chosen, this.page.words?.limit_bytes ?? 0);
    } catch {
      // A file that has gone, or may not be read: the browser tells no more than that.
      return this.page.complain(t("launch.unread"));
    }
    if (files.length) await this._ask(files, {});
  }

  /** @param {LaunchFile[]} files @param {Answers} answers @param {number} [opened] */
  async _ask(files, answers, opened = -1) {
    const number = ++this.asked;
    try {
      const told = await askLaunch(language(), answers, files, opened);
      if (number === this.asked) this._take({ files, answers, told, opened });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (number !== this.asked) return;
      this.page.complain(error.message);
      blameAsked(error.field);
    }
  }

  /** @param {Reading} reading */
  _take(reading) {
    const { told } = reading;
    const before = this.readings.get(this.mark)?.told.training;
    this.mark = `${performance.timeOrigin}-${this.asked}`;
    this.readings.set(this.mark, reading);
    if (this.readings.size > REMEMBERED)
      this.readings.delete(/** @type {string} */ (this.readings.keys().next().value));
    this.page.complain("");
    const { job, training } = told;
    const { state } = this.page.store;
    if (job)
      this.page.edit({
        ...withTraining(withJob(state, job), training, before),
        dims: String(job.dims),
        kind: "",
      });
    this._show();
  }

  _show() {
    const reading = this.readings.get(this.mark);
    if (!reading) return hideReading();
    showReading(reading.told, this.page.words?.frameworks ?? []);
    this.compare();
  }
}

/**
 * Asks what launch files say.
 * @param {string} lang
 * @param {Answers} answers
 * @param {LaunchFile[]} files
 * @param {number} opened  the number under which the server holds them, -1 where it does not
 * @returns {Promise<Told>}
 */
async function askLaunch(lang, answers, files, opened) {
  const asked = launchQuestion(lang, answers);
  if (opened >= 0) return (await ask(`openings/launch?number=${opened}&${asked}`)).json();
  const headers = { "Content-Type": "application/octet-stream" };
  const body = /** @type {Uint8Array<ArrayBuffer>} */ (framed(files));
  return (await ask(`launch?${asked}`, { method: "POST", headers, body })).json();
}
