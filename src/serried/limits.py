"""The limits on what is read of a user's files: a row for each, with its unit and what it bounds.

A file may be damaged, made by a program without end, or meant to do harm. Each reader therefore
takes a time and a memory that grow with the size of its input and no faster, and refuses what
lies beyond these rows in one sentence, or leaves a value open where the rest of the file can
still be read. Every figure is far above what the files of real jobs hold.

>>> LAUNCH_BYTES
Limit(most=1048576, unit='bytes', bounds='a launch file; hostfiles of 10,000 nodes take 300 kB')
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """Holds the most that is taken of one thing, the unit it is counted in, and what it is."""

    most: int
    unit: str
    bounds: str


# ----------------------------------------------------------------------- whole files

LAUNCH_BYTES = Limit(1 << 20, "bytes", "a launch file; hostfiles of 10,000 nodes take 300 kB")
LAUNCH_LINES = Limit(100_000, "lines", "a launch file; a hostfile of 100,000 nodes is the longest")
FOLDER_NAMES = Limit(20_000, "names", "a folder, among which its launch files are chosen")
FOLDER_FILES = Limit(200, "files", "a folder, or one drop on the page, that are looked at")
FOLDER_BYTES = Limit(16 << 20, "bytes", "all files of a folder, or of one drop on the page")
NAMED_FILES = Limit(60, "files", "what a launch file names by a path, and these by theirs")
NAMED_DEPTH = Limit(3, "levels", "files that name others by a path, and are looked through")
SCHEDULE_BYTES = Limit(32 << 20, "bytes", "a schedule; a million actions take 9 MB")
MODEL_CONFIG_BYTES = Limit(1 << 20, "bytes", "a model's config.json; most take 2 kB")
CLUSTER_BYTES = Limit(1 << 20, "bytes", "a cluster as TOML; most take 2 kB")
BUSBW_BYTES = Limit(64 << 20, "bytes", "a busbw table: some thousands of rows, of 200 bytes each")
RETIMED_BYTES = Limit(1 << 20, "bytes", "the plan of a recorded run; it takes 3 kB")
PLAN_ROWS_BYTES = Limit(64 << 20, "bytes", "a table of measured steps; 100,000 rows take 30 MB")
SAMPLE_BYTES = Limit(1 << 20, "bytes", "a file's beginning, by which it is recognised")
SAMPLED_FILES = Limit(200, "files", "a folder whose beginnings are looked at")
UPLOAD_BYTES = Limit(4 << 30, "bytes", "all files of one drop on the page, which are copied")
UPLOAD_FILES = Limit(2000, "files", "one drop on the page that are copied; serve PATH takes more")
CHECK_BYTES = Limit(1 << 30, "bytes", "the report of a check; all links of 100,000 ranks take less")

# ----------------------------------------------------------------------- assistants

ASSISTANT_SECONDS = Limit(120, "s", "one call of an assistant; a search of 530B takes 1 s")
ASSISTANT_CALL = Limit(1 << 16, "bytes", "what an assistant gives in one call; a path has 100")
ASSISTANT_ANSWER = Limit(1 << 18, "bytes", "one answer to an assistant; it reads every byte")

# ----------------------------------------------------------------------- the page's server

ANSWER_SECONDS = Limit(120, "s", "one answer of the page's server; most take a few ms")
ANSWER_BYTES = Limit(
    4 << 30, "bytes", "what one answer takes to make; a million actions take 0.3 GB"
)
SEVERAL_ASKED = Limit(16, "questions", "what is asked at once; a page that opens asks for 6")
SEVERAL_BYTES = Limit(8 << 20, "bytes", "the answers that are asked for at once; 6 take 0.2 MB")
HEAD_SECONDS = Limit(60, "s", "a request's head, which browsers send at once")
DROPPED_HEADER = Limit(1 << 20, "bytes", "the names of one drop, 200 of which are looked at")
UPLOAD_RATE = Limit(1 << 18, "bytes/s", "how slowly a drop may come, beside an answer's time")

# ----------------------------------------------------------------------- reports

REPORT_SPANS = Limit(400_000, "spans", "a run in one file; 200,000 take less than 1 MB")

# ----------------------------------------------------------------------- numbers

MODEL_SIZE = Limit(10_000_000, "units", "a size that a model's config says; words are the most")
PARAMETERS = Limit(10**17, "parameters", "a model; the largest that are published have 10**13")
SEQUENCE = Limit(
    1 << 30, "tokens", "one sequence that is planned; 10 million are the longest known"
)
BATCH = Limit(1 << 30, "sequences", "a step that is planned; jobs take some thousands")
ADAPTER_RANK = Limit(1 << 16, "units", "the rank of LoRA's adapters; most have 8 to 256")
PLANNED_SPANS = Limit(4_000_000, "spans", "a planned step of all ranks, at 40 bytes each")
STEP_EVENTS = Limit(20_000, "layers x microbatches", "a step that is shown event by event")
DIGITS = Limit(18, "digits", "a whole number; Python reads longer ones in quadratic time")
WORD = Limit(2**63, "units", "a number that a script or config works out, as large as C's")
HOST_SLOTS = Limit(4096, "slots", "one host of a hostfile")
UNEQUAL_ALL_TO_ALL = Limit(2048, "ranks", "an all-to-all that is counted block by block")
ULYSSES_RANKS = Limit(128, "ranks", "Ulysses, each of which has heads of its own")
TRIAL_RANKS = Limit(64, "ranks", "a collective that runs on one machine")
COLLECTIVE_LOOKS = Limit(
    1 << 29, "ranks x steps", "what is counted of a collective's steps that differ; 20 s"
)
COLLECTIVE_CHUNKS = Limit(4096, "chunks", "a buffer that goes through a tree or a chain")

# ----------------------------------------------------------------------- JSON, YAML, TOML, Python

CONFIG_VALUES = Limit(50_000, "values", "a config, each counted as often as an alias repeats it")
CONFIG_DEPTH = Limit(60, "levels", "values inside values of a config")
CONFIG_KEY = Limit(1000, "letters", "a key of a config, with the keys around it")
CONFIG_REFERENCE = Limit(1000, "letters", "a value that may be ${other.key}")
REMARKS = Limit(200, "sentences", "what is remarked on one file")
CLAIMS = Limit(12, "values", "what contradicts one another for one size, and is told")
YAML_NUMBER = Limit(80, "letters", "a whole number in YAML, which may be binary")
TOML_ROW = Limit(4096, "letters", "a row of TOML in which a key is looked for, to tell its line")
YAML_DEFAULTS = Limit(64, "files", "YAML that one takes in by its key 'defaults', again or anew")
PYTHON_TEXT = Limit(10_000, "letters", "text that a Python config puts together")
PYTHON_POWER = Limit(64, "bits", "an exponent or a shift in a Python config")
PYTHON_IMPORTS = Limit(4, "levels", "Python configs that import one another, and are followed")
PYTHON_FILES = Limit(16, "files", "Python configs that one takes in, again or anew")

# ----------------------------------------------------------------------- training

DOCUMENT = Limit(64 << 20, "letters", "one document of a CSV or JSONL file that is trained on")
TOKENIZER_BYTES = Limit(256 << 20, "bytes", "a tokenizer.json; 256,000 tokens take 35 MB")
TOKENIZER_CONFIG_BYTES = Limit(16 << 20, "bytes", "a tokenizer_config.json, with its templates")
WEIGHT_INDEX_BYTES = Limit(64 << 20, "bytes", "the index of a model's safetensors files")

# ----------------------------------------------------------------------- shell scripts

SCRIPT_WORDS = Limit(50_000, "words", "a script; expansions and commands count as words")
SCRIPT_BLOCKS = Limit(60, "levels", "blocks inside blocks, such as if in for")
SCRIPT_EXPANSIONS = Limit(40, "levels", "expansions inside expansions, such as ${A:-${B:-1}}")
SCRIPT_CALLS = Limit(24, "levels", "functions and files that call one another")
SCRIPT_STEPS = Limit(300_000, "steps", "following a script, which takes about a second")
SCRIPT_STARTS = Limit(500, "commands", "starts of ranks in one script")
SCRIPT_TURNS = Limit(64, "turns", "a loop that is followed word by word; a longer one is open")
SCRIPT_VALUE = Limit(1_000_000, "letters", "the value of a variable; one that grows on is open")
SCRIPT_CHOICE = Limit(20_000, "letters", "all outcomes of an open condition that are kept apart")
SCRIPT_EDITED = Limit(4096, "letters", "a value cut by ${NAME%pattern}, which is quadratic")
SCRIPT_COMMAND = Limit(1000, "letters", "a command in $(…) that may be one of the known ones")
SCRIPT_ARITHMETIC = Limit(10_000, "letters", "((…)); what is longer counts as nested brackets")

# ----------------------------------------------------------------------- traces

TRACE_RANKS = Limit(1 << 18, "ranks", "a trace, far beyond any job's")
TRACE_STAGES = Limit(1 << 24, "stages", "a trace, and a step's microbatches")
TRACE_STEPS = Limit(2**31 - 1, "steps", "a trace, as many as its columns count")
TRACE_MOMENT = Limit(2**61, "nanoseconds", "since 1970, which reach to 2043")
TRACE_LENGTH = Limit(2**60, "nanoseconds", "from a trace's first moment to its last, 36 years")
EVENT_FILE_BYTES = Limit(64 << 30, "bytes", "an event file, unpacked; it is read piece by piece")
EVENT_FILE_GROWTH = Limit(200, "times", "what a gzipped event file holds; traces shrink to a fifth")
PERFETTO_BYTES = Limit(8 << 30, "bytes", "a file of Perfetto's format, which is read as a whole")
EVENT_LETTERS = Limit(32 << 20, "letters", "an event, or a value beside the events")
EVENTS = Limit(8_000_000, "events", "one file that are of a pipeline, at about 1 kB each")
ACTIVITIES = Limit(40_000_000, "events", "one file's kernels and calls, at about 80 bytes each")
PATH_EVENTS = Limit(2_000_000, "events", "a step whose critical path is told, at about 800 bytes")
PARQUET_VALUES = Limit(100, "values", "each byte of a Parquet file, beyond two million in all")
PINGS_BYTES = Limit(256 << 20, "bytes", "a rank's pings, which are 2 MB a day")
NAMES_BYTES = Limit(64 << 20, "bytes", "the names of a rank's spans, of which there are 65,535")
STEP_PLAN_BYTES = Limit(64 << 20, "bytes", "the plan of a step; 100,000 ranks take 3 MB")
ABOUT_BYTES = Limit(256 << 20, "bytes", "what a store says of its run; 100,000 ranks take 5 MB")
RECORD_LINE = Limit(1 << 16, "bytes", "a record of Paddle's dynamic graph, one a line")
TIMER_LINE = Limit(1 << 16, "bytes", "a line with a timer of Megatron's; longer ones are cut")
TENSOR_RANKS = Limit(1024, "ranks", "neighbours of one stage that Paddle's records are tried with")

# ----------------------------------------------------------------------- diagnosis

DUMP_BYTES = Limit(
    512 << 20, "bytes", "a flight-recorder dump; 2,000 entries with stacks take 2 MB"
)
STACK_BYTES = Limit(64 << 20, "bytes", "stacks of one process; 200 threads take 200 kB")
GROUPS_BYTES = Limit(256 << 20, "bytes", "a job's groups as JSON; 100,000 ranks take 10 MB")
