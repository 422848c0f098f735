// Acronyms in a text of the page, and the key of the card that explains each.
//
//   "DP 2, ETP 2: MFU 41 %"    DP -> dp    ETP -> etp    MFU -> mfu

/** @type {Record<string, string>} */
const KEYS = {
  DP: "dp",
  DDP: "dp",
  TP: "tp",
  PP: "pp",
  CP: "cp",
  EP: "ep",
  ETP: "etp",
  SP: "sp",
  ZeRO: "zero",
  MoE: "moe",
  FSDP: "fsdp",
  HSDP: "fsdp",
  MFU: "mfu",
  HFU: "hfu",
  "FLOP/s": "flops",
  "TFLOP/s": "flops",
  FLOPs: "flops",
  NCCL: "nccl",
  NVLink: "nvlink",
  NIC: "nic",
  NICs: "nic",
  GEMM: "gemm",
  GEMMs: "gemm",
  CUDA: "cuda",
  ZB: "zb",
};
const WORDS = Object.keys(KEYS)
  .sort((one, other) => other.length - one.length)
  .join("|");
// Numbers may follow: TP0, ZeRO-3. Letters may not: a DPO is no DP.
const FOUND = new RegExp(`(?<![A-Za-z/])(?:${WORDS})(?![A-Za-z/])`, "g");

/**
 * Returns the acronyms of a text in order, each with its place and its card.
 * @param {string} text
 * @returns {{at: number, word: string, key: string}[]}
 */
export function acronyms(text) {
  return [...text.matchAll(FOUND)].map(({ index, 0: word }) => ({
    at: index,
    word,
    key: KEYS[word],
  }));
}
