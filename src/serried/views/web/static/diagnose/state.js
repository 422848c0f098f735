// The state of the Diagnose tab: which diagnosis is open, and which of its findings is in view.

/**
 * @typedef {object} DiagnoseState
 * @property {string} diagnosed  the name of the diagnosis that is shown, "" for none
 * @property {string} finding    the number of its finding in view, "" for the first
 */

/** @type {Readonly<DiagnoseState>} */
export const DIAGNOSE_DEFAULTS = Object.freeze({ diagnosed: "", finding: "" });

/** The diagnosis that every page can show; the server holds it. */
export const EXAMPLE = "example:skipped-all-reduce";
