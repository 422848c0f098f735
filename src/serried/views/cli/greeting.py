"""What ``serried`` says when it is asked nothing: which command answers which question.

>>> print(greeting("en").splitlines()[2])
  serried groups train.sh                       which rank is in which group, from your launch file
"""

from __future__ import annotations

from serried.finding import said
from serried.views.sentences import say

FIRST = said(
    "serried shows every rank of a parallel training job, from its plan to its post-mortem"
)
QUESTIONS = (
    ("groups train.sh", said("which rank is in which group, from your launch file")),
    ("plan train.sh --cluster h100", said("whether it fits, how long a step takes, and why")),
    ("schedule zbv --pp 4 --microbatches 8", said("a pipeline schedule, drawn and timed")),
    ("collective all-reduce --ranks 8", said("who sends what to whom, and what it costs")),
    ("trace stats runs/first", said("what every rank of a recorded run did")),
    ("diagnose logs/", said("which rank hung or is slow, and why")),
    ("serve", said("all of it on a page")),
    ("demo", said("a real training here, recorded and shown on the page")),
)
LAST = said("'serried --help' lists all commands; 'serried COMMAND --help' explains one")


def greeting(lang: str) -> str:
    """Returns the lines, the command on the left and its question on the right."""
    widest = max(len(command) for command, _ in QUESTIONS) + 2
    rows = [
        f"  serried {command:<{widest}}{question}"
        for command, question in ((command, say(asked, lang)) for command, asked in QUESTIONS)
    ]
    return "\n".join((say(FIRST, lang), "", *rows, "", say(LAST, lang)))
