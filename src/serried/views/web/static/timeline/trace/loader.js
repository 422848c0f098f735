// Asks the server for what the timeline shows: one question at a time, old ones given up.
//
// While an answer is awaited the sheets there are stay in view, the coarser under the finer.

import { readPayload } from "../../base/payload.js";
import { askPayload } from "../../base/questions.js";
import { runsText } from "./range.js";
import { readSheet } from "./sheet.js";

/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {import("./sheet.js").Colouring} Colouring */
/**
 * @typedef {object} Need  what is in view
 * @property {number} from
 * @property {number} to
 * @property {number} bucket  nanoseconds, a power of two
 * @property {number[]} tracks
 * @property {number[]} groups
 * @property {string} by
 */
/** @typedef {Need & {colouring: Colouring, words: string, isOverview: boolean}} Question */

const WAIT_MS = 35;
/** How much more than what is in view is asked for on each side, in shares of its width. */
const BESIDE = 0.6;
const OVERVIEW_BYTES = 1_500_000;

/** Brings in the sheets of one trace. */
export class Loader {
  /** @param {() => void} arrived @param {(error: unknown) => void} failed */
  constructor(arrived, failed) {
    this.arrived = arrived;
    this.failed = failed;
    /** @type {Tracks | null} */
    this.tracks = null;
    this.trace = "0";
    /** @type {Need | null} */
    this.need = null;
    /** @type {Colouring | null} */
    this.colouring = null;
    /** @type {number | null} */
    this.timer = null;
    /** @type {Question | null} */
    this.asked = null;
    this.asking = new AbortController();
    /** The question that was answered last, or refused; it is not asked again at once. */
    this.answered = "";
    this.count = 0;
  }

  get isBusy() {
    return this.timer !== null || this.asked !== null;
  }

  /** Starts anew with a trace. @param {Tracks} tracks @param {string} trace */
  start(tracks, trace) {
    this._stop();
    Object.assign(this, { tracks, trace });
    this.answered = "";
  }

  /**
   * Sees to it that what is in view is there or asked for.
   * @param {Need} need
   * @param {Colouring} colouring
   */
  want(need, colouring) {
    if (colouring !== this.colouring && this.asked) this._stop();
    Object.assign(this, { need, colouring });
    if (this.timer !== null || !this._next()) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      void this._ask();
    }, WAIT_MS);
  }

  _stop() {
    this.asking.abort();
    this.asked = null;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  /**
   * Returns the question to ask next, null where all is there or on its way.
   * @returns {Question | null}
   */
  _next() {
    const { tracks, need, colouring } = this;
    if (!tracks || !need || !colouring) return null;
    const overview = this._overview(tracks, need, colouring);
    const question =
      overview ?? (isThere(tracks, need, colouring) ? null : this._window(tracks, need, colouring));
    if (!question || question.words === this.answered) return null;
    if (this.asked && (overview || holds(this.asked, need))) return null;
    return question;
  }

  /**
   * Asks for all of a large trace, coarsely, unless that is there.
   * @param {Tracks} tracks
   * @param {Need} need
   * @param {Colouring} colouring
   */
  _overview(tracks, { by }, colouring) {
    const last = tracks.sheets[tracks.sheets.length - 1];
    if (tracks.isWhole || (last && last.colour === colouring.name)) return null;
    const all = Array.from({ length: tracks.bounds.length - 1 }, (_, track) => track);
    const most = Math.min(
      2048,
      Math.max(64, OVERVIEW_BYTES / all.length / colouring.colours.length),
    );
    const bucket = 2 ** Math.ceil(Math.log2(tracks.total / most));
    return this._question(
      { from: 0, to: tracks.total, bucket, tracks: all, groups: [], by },
      colouring,
      true,
    );
  }

  /**
   * Asks for what is in view and some of what is beside it.
   * @param {Tracks} tracks
   * @param {Need} need
   * @param {Colouring} colouring
   */
  _window(tracks, need, colouring) {
    const beside = BESIDE * (need.to - need.from);
    const from = Math.floor(Math.max(0, need.from - beside) / need.bucket) * need.bucket;
    const to = Math.ceil(Math.min(tracks.total, need.to + beside) / need.bucket) * need.bucket;
    return this._question({ ...need, from, to }, colouring, false);
  }

  /**
   * @param {Need} need
   * @param {Colouring} colouring
   * @param {boolean} isOverview
   * @returns {Question}
   */
  _question(need, colouring, isOverview) {
    const words = new URLSearchParams({
      colour: colouring.name,
      bucket: String(need.bucket),
      first: String(need.from / need.bucket),
      last: String(Math.ceil(need.to / need.bucket)),
      tracks: runsText(need.tracks),
      by: need.by,
      groups: runsText(need.groups),
    });
    return { ...need, colouring, isOverview, words: `trace=${this.trace}&${words}` };
  }

  async _ask() {
    const question = this._next();
    const { tracks } = this;
    if (!question || !tracks) return;
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.asked = question;
    try {
      const buffer = await askPayload(`trace/window?${question.words}`, signal);
      if (signal.aborted) return;
      const sheet = readSheet(readPayload(buffer), question.colouring);
      if (question.isOverview) tracks.lay(sheet);
      else tracks.add(sheet);
      this.answered = question.words;
      this.count++;
    } catch (error) {
      if (signal.aborted) return;
      this.answered = question.words;
      this.failed(error);
    } finally {
      if (this.asked === question) this.asked = null;
    }
    this.arrived();
  }
}

/**
 * Tells whether all that is in view is there, fine enough and in the right colours.
 * @param {Tracks} tracks
 * @param {Need} need
 * @param {Colouring} colouring
 */
function isThere({ sheets }, need, colouring) {
  /** @param {import("./sheet.js").Piece | undefined} piece */
  const fits = (piece) => {
    if (!piece || piece.from > need.from || piece.to < need.to) return false;
    if ("firstId" in piece)
      return colouring.legend !== "scale" || piece.spans.values.has(colouring.name);
    return piece.bucket <= need.bucket && piece.colouring.name === colouring.name;
  };
  return (
    need.tracks.every((track) => sheets.some((sheet) => fits(sheet.tracks.get(track)))) &&
    need.groups.every((group) =>
      sheets.some((sheet) => fits(sheet.groups.get(`${need.by}:${group}`))),
    )
  );
}

/**
 * Tells whether the answer to a question will hold what is in view.
 * @param {Question} question
 * @param {Need} need
 */
function holds(question, need) {
  return (
    question.from <= need.from &&
    question.to >= need.to &&
    question.bucket <= need.bucket &&
    question.by === need.by &&
    need.tracks.every((track) => question.tracks.includes(track)) &&
    need.groups.every((group) => question.groups.includes(group))
  );
}
