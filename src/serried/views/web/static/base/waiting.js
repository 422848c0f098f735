// Answers that are awaited, counted, so that it is known when the page has come to rest.

/** Counts what is awaited, and tells of what failed. */
export class Waiting {
  /** @param {(error: unknown) => void} failed */
  constructor(failed) {
    this.failed = failed;
    this.count = 0;
  }

  get isBusy() {
    return this.count > 0;
  }

  /** Counts an answer as awaited until it is there. @param {Promise<unknown>} answer */
  async until(answer) {
    this.count++;
    try {
      await answer;
    } catch (error) {
      this.failed(error);
    } finally {
      this.count--;
    }
  }
}
