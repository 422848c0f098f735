// The rules that the page's modules keep; Prettier sees to their layout, tsc to their types.

import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    rules: {
      eqeqeq: "error",
      "func-style": ["error", "declaration", { allowArrowFunctions: true }],
      "max-len": ["error", { code: 100 }],
      "max-lines": ["error", { max: 400 }],
      "max-lines-per-function": ["error", { max: 60, skipComments: true, skipBlankLines: true }],
      "no-duplicate-imports": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-shadow": "error",
      "no-useless-rename": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["src/**/*.js"],
    languageOptions: { globals: globals.browser },
    rules: { "no-console": ["error", { allow: ["error"] }] },
  },
  {
    files: ["tests/**/*.js", "eslint.config.js"],
    languageOptions: { globals: globals.node },
  },
  {
    // What a test calls in the page itself.
    files: ["tests/views/**/*.js"],
    languageOptions: { globals: { ...globals.browser, serried: "readonly" } },
  },
];
