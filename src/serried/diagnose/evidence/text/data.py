"""What is said of loaders of data, and of numbers that are none.

Signs: ``loader_killed`` (facts ``pid``, ``signal``), ``loader_died``, ``loader_timeout``,
``nan`` (facts ``rank``, ``iteration``, ``what``), ``nan_repeats`` (a second run on the same GPU
gave it again), ``nan_differs`` (it did not), ``gradients_differ`` (after they were summed).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "Unexpected result nan on rank 3 at iteration #7 invocation #2 (message='found NaN in x')"
>>> [sign] = data_signs(log_line(raw, "x", 1))
>>> sign.kind, sign.speaker.rank, sign.facts["iteration"]
('nan', 3, 7)
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_PATTERNS = (
    Pattern(
        "loader_killed",
        r"DataLoader (?:worker|process) \(pid(?:\(s\))? (?P<worker>[\d, ]+)\) (?:exited )?"
        r"is killed by signal: (?P<signal>[\w ]+)",
    ),
    Pattern(
        "loader_killed",
        r"Unexpected (?P<signal>segmentation fault|floating-point exception) encountered in worker",
    ),
    Pattern("gradients_differ", r"gradients are inconsistent between workers"),  # fairseq's
    Pattern("loader_died", r"DataLoader worker \(pid(?:\(s\))? (?P<worker>[\d, ]+)\) exited"),
    Pattern("loader_died", r"Pin memory thread exited unexpectedly"),
    Pattern("loader_timeout", r"DataLoader timed out after (?P<seconds>\d+) seconds"),
    Pattern(
        "nan",
        r"Unexpected result (?P<value>nan|inf)\S* on rank (?P<rank>\d+) at iteration "
        r"#(?P<iteration>\d+)",
    ),
    Pattern(
        "nan_repeats",
        r"Rank (?P<rank>\d+), .*iteration #(?P<iteration>\d+): .*unexpected result is reproducible",
    ),
    Pattern(
        "nan_differs",
        r"Rank (?P<rank>\d+), .*iteration #(?P<iteration>\d+): .*(?:not reproducible|different)",
    ),
    Pattern(
        "nan",
        r"[Rr]ank (?P<rank>\d+).{0,80}(?<!\b0 )(?<!\b[nN]o )\b(?:NaN|nan)\b(?! ?%|s?[:=] ?0\b)",
    ),
    Pattern(
        "nan",
        r"[fF]ound (?:NaN|Inf|nan|inf)(?:/Inf| or Inf| values)? in "
        r"(?P<what>(?P<own>local )?(?:(?! on rank)[^.,;)'\"]){3,60})",
    ),
    Pattern(
        "nan",
        r"\b(?:lm |train[_ ]|total[_ ])?(?:loss|grad[_ ]norm)\w*'?\"?\s?(?:is|:|=|became|->)\s*"
        r"(?:tensor\()?'?(?P<value>nan|NaN|NAN|-?inf)\b",
    ),
    Pattern(
        "nan",
        r"\b(?:[Ll]oss|grad[_ ]?norm|perplexity|ppl)(?:[/_]\w+)?['\"]?\s{0,3}[:=|\-]?\s{0,8}"
        r"(?P<value>nan|NaN|NAN)\b",
    ),
    Pattern("nan", r"[Nn]on-finite (?:grad\w*|loss\w*|value\w*)|not finite: "),
    Pattern("nan", r"[Gg]rad(?:ient)?[_ ]?norm is (?:nan|NaN)"),
    Pattern("nan", r"loss scale to (?:0\.0\b|\d(?:\.\d+)?e-\d)"),  # apex knows no least one
    Pattern("nan", r"OVERFLOW! .*Attempted loss scale: [01](?:\.0)?,"),
    Pattern(
        "nan",
        r"\b(?:NaN|Nan|nan|Inf) (?:or Inf )?(?:loss|gradient|grad|value)s?(?: \w+)? "
        r"(?:found|detected|encountered|occur)",
    ),
    Pattern(
        "nan",
        r"(?:[lL]oss|gradients?|logits|[oO]utputs?) (?:is|are|contains?|became|has) "
        r"(?:NaNs?|NAN|nans?|inf(?:inite|inity|s)?)\b(?!-)",
    ),
    Pattern("nan", r"(?P<own>probability tensor) contains either `inf`, `nan`"),
    Pattern("nan", r"Current loss scale already at minimum|Unexpected result (?:nan|inf)\b"),
    Pattern("nan", r"(?P<own>Function '\w+') returned nan values in its \d+th output"),
    Pattern(
        "nan", r"loss scale.*(?:too small|reached minimum)|FloatingPointError: Minimum loss scale"
    ),
)


def data_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what is said of data and numbers in a line."""
    yield from first_signs(_PATTERNS, line)
