// What is typed to search a timeline: "3F2", "F", "send", "rank 37 forward", "mb 5 step 2".
//
//   37, rank 37, node 4, stage 2, mb 5, step 1     a number with its word; alone it is a rank
//   F, SEND, recv, forward, 3F, F2, 3F2, 0SEND_F2  an action, or what several actions begin with
//   anything else                                  a part of what its user called a span

/**
 * @typedef {object} Wanted  null wishes nothing
 * @property {string[] | null} kinds
 * @property {number | null} rank
 * @property {number | null} node
 * @property {number | null} stage
 * @property {number | null} microbatch
 * @property {number | null} step
 * @property {string} called
 */
/** @typedef {"rank" | "node" | "stage" | "microbatch" | "step"} Numbered */

/** @type {Map<string, Numbered>} */
const NUMBERED = new Map(
  Object.entries({
    rank: "rank",
    node: "node",
    stage: "stage",
    step: "step",
    mb: "microbatch",
    microbatch: "microbatch",
    节点: "node",
    阶段: "stage",
    步: "step",
    微批次: "microbatch",
  }),
);

/** @type {Map<string, string[]>} */
const WORDS = new Map(
  Object.entries({
    forward: ["F", "OVERLAP_F_B"],
    backward: ["B", "I", "OVERLAP_F_B"],
    weight: ["W"],
    overlap: ["OVERLAP_F_B"],
    receive: ["RECV_F", "RECV_B"],
    wait: ["RECV_F", "RECV_B"],
    reduce: ["REDUCE_GRAD"],
    named: ["SPAN"],
    前向: ["F", "OVERLAP_F_B"],
    反向: ["B", "I", "OVERLAP_F_B"],
    权重: ["W"],
    发送: ["SEND_F", "SEND_B"],
    等待: ["RECV_F", "RECV_B"],
    接收: ["RECV_F", "RECV_B"],
    规约: ["REDUCE_GRAD"],
    优化器: ["OPTIMIZER"],
  }),
);

/**
 * Reads what was typed; null when it is nothing to search for.
 * @param {string} text
 * @param {string[]} kinds names of the kinds of action there are
 * @returns {Wanted | null}
 */
export function readSeek(text, kinds) {
  const spaced = text
    .trim()
    .replace(/[，,、=:：]/g, " ")
    .replace(/(节点|阶段|步|微批次)(?=\d)/g, "$1 ");
  const tokens = spaced.split(/\s+/).filter(Boolean);
  /** @type {Wanted} */
  const wanted = {
    kinds: null,
    rank: null,
    node: null,
    stage: null,
    microbatch: null,
    step: null,
    called: "",
  };
  /** @type {string[]} */
  const called = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i].toLowerCase();
    const joined = /^([a-z]+)(\d+)$/.exec(token);
    const word = NUMBERED.get(token);
    if (word && /^\d+$/.test(tokens[i + 1] ?? "")) {
      if (!wish(wanted, word, Number(tokens[++i]))) return null;
    } else if (/^\d+$/.test(token)) {
      if (!wish(wanted, "rank", Number(token))) return null;
    } else if (joined && NUMBERED.has(joined[1])) {
      if (!wish(wanted, /** @type {Numbered} */ (NUMBERED.get(joined[1])), Number(joined[2])))
        return null;
    } else if (!readAction(tokens[i], kinds, wanted)) called.push(tokens[i]);
  }
  wanted.called = called.join(" ");
  return tokens.length ? wanted : null;
}

/** @param {Wanted} wanted @param {Numbered} word @param {number} value */
function wish(wanted, word, value) {
  if (wanted[word] !== null && wanted[word] !== value) return false;
  wanted[word] = value;
  return true;
}

/**
 * Reads an action, whole or in part; false where it is none.
 * @param {string} token
 * @param {string[]} kinds
 * @param {Wanted} wanted
 */
function readAction(token, kinds, wanted) {
  const match = /^(\d+)?([a-z_-]+|[\u4e00-\u9fff]+)(\d+)?$/i.exec(token);
  if (!match) return false;
  const [, stage, word, microbatch] = match;
  const named = kindsOf(word, kinds);
  if (!named.length || wanted.kinds) return false;
  wanted.kinds = named;
  return (
    (stage === undefined || wish(wanted, "stage", Number(stage))) &&
    (microbatch === undefined || wish(wanted, "microbatch", Number(microbatch)))
  );
}

/** @param {string} word @param {string[]} kinds */
function kindsOf(word, kinds) {
  const name = word.toUpperCase().replaceAll("-", "_");
  if (kinds.includes(name)) return [name];
  const known = WORDS.get(word.toLowerCase());
  if (known) return known;
  return name.length > 1 ? kinds.filter((kind) => kind.startsWith(name)) : [];
}

/** Writes what is wanted as the words of a question. @param {Wanted} wanted */
export function seekWords(wanted) {
  const words = new URLSearchParams();
  if (wanted.kinds) words.set("kinds", wanted.kinds.join(","));
  for (const name of /** @type {Numbered[]} */ (["rank", "node", "stage", "microbatch", "step"])) {
    if (wanted[name] !== null) words.set(name, String(wanted[name]));
  }
  if (wanted.called) words.set("called", wanted.called);
  return words.toString();
}

/**
 * Tells whether spans of a row can be wanted at all.
 * @param {Wanted} wanted
 * @param {{rank: number, node: number}} row
 */
export function isRowWanted(wanted, row) {
  return (
    (wanted.rank === null || wanted.rank === row.rank) &&
    (wanted.node === null || wanted.node === row.node)
  );
}

/**
 * Returns a test of spans, the row left aside.
 * @param {Wanted} wanted
 * @param {{number: number, name: string}[]} actions
 * @param {string[]} names what users called spans
 * @returns {(spans: {kind: Int32Array, stage: Int32Array, microbatch: Int32Array, step: Int32Array,
 *   named: Int32Array}, i: number) => boolean}
 */
export function spanTest(wanted, actions, names) {
  const { stage, microbatch, step } = wanted;
  const kinds =
    wanted.kinds &&
    new Set(actions.filter(({ name }) => wanted.kinds?.includes(name)).map(({ number }) => number));
  const called = wanted.called && wanted.called.toLowerCase();
  const isCalled =
    called && new Set(names.flatMap((name, i) => (name.toLowerCase().includes(called) ? [i] : [])));
  return (spans, i) =>
    (!kinds || kinds.has(spans.kind[i])) &&
    (stage === null || spans.stage[i] === stage) &&
    (microbatch === null || spans.microbatch[i] === microbatch) &&
    (step === null || spans.step[i] === step) &&
    (!isCalled || isCalled.has(spans.named[i]));
}
