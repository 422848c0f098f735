"""Shell scripts are followed as bash would run them, without running anything."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.launch.shell.follow import follow
from serried.launch.shell.story import StartedCommand


def runs(text: str, **beside: str) -> list[StartedCommand]:
    return follow(text, "run.sh", beside).runs


def words(text: str, **beside: str) -> list[list[str | None]]:
    """Returns the words of each command a script would start."""
    return [[each.text for each in run.fields] for run in runs(text, **beside)]


def started(text: str, **beside: str) -> list[str | None]:
    """Returns the words of the last command after ``go``."""
    found = [line[1:] for line in words(text, **beside) if line and line[0] == "go"]
    return found[-1]


WORDS = [
    ("go a b", ["a", "b"]),
    ("go 'a b' \"c d\"", ["a b", "c d"]),
    ("A=1; go $A ${A} \"$A\" '$A'", ["1", "1", "1", "$A"]),
    ("A='1 2'; go $A \"$A\" x$A", ["1", "2", "1 2", "x1", "2"]),
    ('A=; go $A "$A" x${A}y', ["", "xy"]),
    ("go a \\\n  b # c\n", ["a", "b"]),
    ("go a;# c", ["a"]),
    ("go a#b", ["a#b"]),
    ("go a\\ b \\$A", ["a b", "$A"]),
    ("go $'a' $\"b\"", ["a", "b"]),
    ("go ${A:-8} ${A-9} ${A:+x}", ["8", "9"]),
    ("A=; go ${A:-8} ${A-9}", ["8"]),
    ("A=2; go ${A:-8} ${A:+x}", ["2", "x"]),
    ("go ${A:-${B:-3}} ${C:=4} $C", ["3", "4", "4"]),
    ('go "${A:-"x y"}"', ["x y"]),
    ("A=a.b.c; go ${A%.*} ${A%%.*} ${A#*.} ${A##*.}", ["a.b", "a", "b.c", "c"]),
    ("A=7B-x; go ${A/B/b} ${A:0:2} ${A^^} ${#A}", ["7b-x", "7B", "7B-X", "4"]),
    ("A=B; B=5; go ${!A}", ["5"]),
    ("A=(1 '2 3'); go ${A[@]}", ["1", "2", "3"]),
    ('A=(1 "2 3"); go "${A[@]}" ${#A[@]} ${A[1]}', ["1", "2 3", "2", "2", "3"]),
    ("A=(1); A+=(2 3); A[0]=9; go ${A[*]}", ["9", "2", "3"]),
    ("A=(1 2); A[5]=x; go ${A[5]} ${A[3]} ${#A[@]} ${A[@]}", ["x", "3", "1", "2", "x"]),
    ("A[3]=x; A[1]=y; A+=(z); go ${A[@]} ${A[4]}", ["y", "x", "z", "z"]),
    ("A=(1 2); A[4]=5; A[2]=3; A[3]=4; A[4]=6; go ${A[*]}", ["1", "2", "3", "4", "6"]),
    ("A=(1); A[9]=x; A=(2); go ${A[@]}", ["2"]),
    ("A=(1); A[9]=x; unset A; go a ${A[@]}", ["a"]),
    ("A=x; A[0]=y; A[1]=z; go ${A[@]} $A", ["y", "z", "y"]),
    ('A=(1); A=("${A[@]}" 2); go "${A[@]}"', ["1", "2"]),
    ('A=(1 2); go "a ${A[*]} b" "${A[@]}"', ["a 1 2 b", "1", "2"]),
    ("A=(\n  --a 1 # one\n  # two\n  --b\n)\ngo ${A[@]}", ["--a", "1", "--b"]),
    ("declare -A S=([7B]=2 [70B]=8); M=70B; go ${S[$M]} ${S[7B]}", ["8", "2"]),
    ("declare -A S=([7B]=2 [70B]=8); go ${#S[@]}", ["2"]),
    ("f() { go ${#@} ${#*}; }; f a b c", ["3", "3"]),
    ("A=--x; A+=' --y'; A=\"$A --z\"; go $A", ["--x", "--y", "--z"]),
    ("A=' --x 1 \\\n  --y'\ngo $A", ["--x", "1", "\\", "--y"]),
    ('A=" --x 1 \\\n  --y"\ngo $A', ["--x", "1", "--y"]),
    (
        "N=3; go $((N * 8)) $(( (N + 1) / 2 )) $((N > 2 ? 1 : 0)) $((2**4 % 5))",
        ["24", "2", "1", "1"],
    ),
    ("go $((-2**2)) $((2**3**2)) $((-2**2*3)) $((!0**2)) $((2*-3))", ["4", "512", "12", "1", "-6"]),
    ("go $((2**-1))", [None]),
    ("N=1; ((N++)); let N+=4; N=$((N << 1)); go $N", ["12"]),
    ("export A=1 B=2; readonly C=3; local D=4; go $A$B$C$D", ["1234"]),
    ("A=1 go $A", [None]),
    ("go {1..3} *.txt ~/x", ["{1..3}", "*.txt", "~/x"]),
    ("go a > out 2>&1 &", ["a"]),
    ("go a &> out", ["a"]),
    ("go a 2>/dev/null | tee log", ["a"]),
    ("go a <<< text", ["a"]),
    ("go a < <(b)", ["a"]),
    ("true && go a || go b", ["a"]),
    ("false && go a; go b", ["b"]),
    ("false || go a", ["a"]),
    ("! true || go a", ["a"]),
    ("{ go a; }", ["a"]),
    ("A=1; (A=2; echo); go $A", ["1"]),
    ("N=3; go $[$N * 8] $[($N + 1) / 2] $[", ["24", "2", "$["]),
    ("A=(a b c); unset 'A[1]'; go ${A[@]} ${#A[@]} ${A[2]}", ["a", "c", "2", "c"]),
    ("A=(a b); unset 'A[5]' 'A[1]'; A+=(z); go ${A[@]} ${A[1]}", ["a", "z", "z"]),
    ("A=(a b); unset 'A[@]'; go x ${A[@]}", ["x"]),
    ("IFS=, read -r A B C <<< '4,2,x,y'; go $A $B $C", ["4", "2", "x,y"]),
    ("read -r A B <<< ' 4  2 '; go $A $B", ["4", "2"]),
    ("read -r A B <<< 4; go $A x$B", ["4", "x"]),
    ("IFS=: read -ra A <<< '1:2:3'; go ${A[2]} ${#A[@]}", ["3", "3"]),
    ("for i in $(seq 2 3); do A+=$i; done; go $A", ["23"]),
]


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=[text for text, _ in WORDS])
def test_words_are_expanded_as_bash_does(text: str, expected: list[str | None]) -> None:
    assert started(text) == expected


CONDITIONS = [
    ("[ 8 -gt 4 ]", True),
    ("[ 4 -ge 8 ]", False),
    ("[[ 7B == 7* ]]", True),
    ("[[ 7B == 7 ]]", False),
    ("[ a = a ] && [ b != c ]", True),
    ("[[ a == a && ( b == c || 1 -eq 1 ) ]]", True),
    ("[ a = a -a b = c ]", False),
    ("test -n ''", False),
    ("[ -z '' ]", True),
    ("[ ! x = y ]", True),
    ("(( 8 > 4 ))", True),
    ("(( 4 % 2 ))", False),
    ("[ x ]", True),
    ("[[ '' ]]", False),
    ("[ -z $UNSET ]", True),
    ('[ -n "$UNSET" ]', False),
    ('[ "$UNSET" = "" ]', True),
    ("[ $# -lt 1 ]", True),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_a_condition_that_the_file_settles_is_decided(condition: str, holds: bool) -> None:
    assert started(f"if {condition}; then go yes; else go no; fi") == ["yes" if holds else "no"]


@pytest.mark.parametrize(
    "condition",
    [
        "[ -f x ]",
        "docker ps",
        "[ $UNSET = 1 ]",
        "[ $(nproc) -gt 8 ]",
        "[[ $1 == a ]]",
        "[ a '<' b ]",
    ],
)
def test_a_condition_that_only_running_would_settle_stays_open(condition: str) -> None:
    found = words(f"if {condition}; then go yes; else go no; fi")
    assert ["go", "yes"] in found
    assert ["go", "no"] in found


def test_what_both_outcomes_share_stays_known() -> None:
    run = runs("A='--tp 2'; if docker ps; then A+=' --ep 4'; fi; A+=' --pp 8'\ngo $A")[-1]
    assert [(each.text, bool(each.maybe)) for each in run.fields[1:]] == [
        ("--tp", False),
        ("2", False),
        ("--ep", True),
        ("4", True),
        ("--pp", False),
        ("8", False),
    ]


def test_arrays_keep_the_words_of_an_open_condition_apart() -> None:
    run = runs('A=(--tp 2); if docker ps; then A+=(--ep 4); fi\ngo "${A[@]}"')[-1]
    assert [bool(each.maybe) for each in run.fields[1:]] == [False, False, True, True]


def test_a_variable_with_two_outcomes_gives_both_words() -> None:
    run = runs("if docker ps; then N=1; else N=2; fi\ngo --nnodes=$N")[-1]
    assert [each.text for each in run.fields[1:]] == ["--nnodes=1", "--nnodes=2"]


def test_a_branch_that_ends_the_script_leaves_the_other() -> None:
    assert started("N=1\nif [ ! -f x ]; then N=2; exit 1; fi\ngo $N") == ["1"]
    assert started("[ -f x ] || exit 1\ngo a") == ["a"]
    assert started("if [ $# -lt 4 ]; then echo usage; exit 1; fi\ngo a") == ["a"]


def test_nothing_after_exit_is_followed() -> None:
    assert words("go a\nexit 0\ngo b") == [["go", "a"]]


CASE = "case $M in 7B|8B) N=1;; 70*) N=2;; *) N=9;; esac\ngo $N"


@pytest.mark.parametrize(("model", "expected"), [("8B", "1"), ("70B", "2"), ("x", "9")])
def test_a_case_takes_the_arm_that_matches(model: str, expected: str) -> None:
    assert started(f"M={model}\n{CASE}") == [expected]


def test_a_case_over_something_unknown_keeps_every_arm() -> None:
    assert started(f"M=$1\n{CASE}") == ["1", "2", "9"]


def test_loops_over_known_words_turn_as_often_and_others_once() -> None:
    assert words("for i in 0 1; do go $i; done") == [["go", "0"], ["go", "1"]]
    assert words("for i in $HOSTS; do go $i; done") == [["go", None]]
    assert words("for ((i=0; i<4; i++)); do go x; done") == [["go", "x"]]
    assert words("while true; do go x; sleep 1; done")[0] == ["go", "x"]
    assert words("for i in 0 1 2; do go $i; break; done") == [["go", "0"]]


def test_a_loop_that_reads_arguments_counts_as_not_entered() -> None:
    text = "TP=2\nwhile [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2;; esac; done\ngo $TP"
    assert started(text) == ["2"]
    assert started("TP=2\nwhile getopts t: o; do TP=$OPTARG; done\ngo $TP") == ["2"]


def test_functions_get_their_arguments() -> None:
    text = 'f() { local n=$1; shift; go "$n" $# "$@" ${1:-x}; }\nf a b "c d"'
    assert started(text) == ["a", "2", "b", "c d", "b"]
    assert started("function f { go $1; return; go no; }\nf 1\ngo 2") == ["2"]


NESTED = {
    "eval go a": ["a"],
    'C="go $N"; eval $C': ["8"],
    "bash -c 'go $N'": ["8"],
    'srun -N 2 bash -lc "go $N"': ["8"],
    "ssh host 'cd x && go $N'": ["8"],
    "docker run img /bin/sh -c 'N=9 ; go $N'": ["9"],
    'sbatch --wrap="go $N"': ["8"],
    "sbatch <<E\n#!/bin/bash\ngo $N \\$N\nE": ["8", "8"],
    "sbatch <<'E'\ngo $N\nE": ["8"],
    "cat > job.sh <<E\ngo $N\nE\nbash job.sh": ["8"],
    "echo 'go a' > job.sh; sh job.sh": ["a"],
    ". env.sh; go $X": ["7"],
    "source ./lib/env.sh\ngo $X": ["7"],
    "bash other.sh 1 2": ["2", "8"],
    "N=3 bash other.sh 1 2": ["2", "3"],
}


@pytest.mark.parametrize(("text", "expected"), NESTED.items(), ids=list(NESTED))
def test_scripts_within_scripts_are_followed(text: str, expected: list[str]) -> None:
    beside: Mapping[str, str] = {"env.sh": "export X=7", "other.sh": "go $2 $N"}
    found = follow(f"N=8\n{text}", "run.sh", beside).runs
    lines = [[each.text for each in run.fields[1:]] for run in found if run.fields[0].text == "go"]
    assert lines[-1] == expected


def test_words_know_the_line_and_variable_they_came_from() -> None:
    run = runs('TP=4\nA="--pp 2\n --tp $TP"\ngo $A')[-1]
    assert [(each.text, each.line.number, each.via) for each in run.fields] == [
        ("go", 4, ""),
        ("--pp", 2, ""),
        ("2", 2, ""),
        ("--tp", 3, ""),
        ("4", 1, "TP"),
    ]


def test_a_stray_option_after_a_comment_is_remarked() -> None:
    story = follow("go a \\\n  # b \\\n  --c 1", "run.sh", {})
    assert [str(note) for note in story.notes] == [
        "run.sh line 3: '--c' begins a command of its own; "
        "a comment or a blank after '\\' ends the one above"
    ]


def test_a_script_of_too_many_steps_is_stopped() -> None:
    loop = "for a in " + " ".join(map(str, range(60))) + "; do "
    with pytest.raises(InputError) as caught:
        runs(loop * 3 + "go x; " + "done; " * 3)
    assert str(caught.value).endswith(": the script takes more steps than a launch script does")


@given(st.text(alphabet="ab $\"'`(){}[]<>|&;\\\n#=+-*/%!?.,0", max_size=60))
def test_any_text_is_followed_or_refused_with_a_sentence(text: str) -> None:
    try:
        follow(text, "run.sh", {})
    except InputError as refusal:
        assert str(refusal).startswith("run.sh line ")


@pytest.mark.parametrize(
    "text",
    [
        "ID=$(sbatch --parsable --nodes=2 job.slurm)",
        "SUBMIT='sbatch --nodes=2 job.slurm'\nID=$($SUBMIT)",
        "echo $(sbatch --nodes=2 job.slurm | awk '{print $4}')",
    ],
)
def test_a_job_is_followed_where_its_number_is_kept(text: str) -> None:
    job = "#!/bin/bash\n#SBATCH -N 8\nsrun go\n"
    [run] = [
        each
        for each in follow(text, "run.sh", {"job.slurm": job}).runs
        if each.fields[0].text == "srun"
    ]
    assert run.job is not None
    assert run.job.number("nodes") == 2


@pytest.mark.parametrize(
    "name", ["/usr/local/ascend/set_env.sh", "/opt/x/env.sh", "~/.bashrc", "venv/bin/activate"]
)
def test_a_file_of_the_machine_is_no_script_that_is_missing(name: str) -> None:
    story = follow(f"source {name}\ngo\n", "run.sh", {})
    assert (list(story.notes), story.not_given) == ([], [])


def test_a_function_of_another_script_is_not_the_one_being_called() -> None:
    found = words("main() { bash b.sh; }\nmain\n", **{"b.sh": "main() { go inner; }\nmain\n"})
    assert found == [["go", "inner"]]
    after = words("f() { go a; }\nbash b.sh\nf\n", **{"b.sh": "f() { go b; }\n"})
    assert after == [["go", "a"]]


def test_words_behind_the_text_of_a_shell_are_its_own_arguments() -> None:
    text = """RUN='"$@"; echo done'\nstage() { "$@"; }\nstage bash -c "$RUN" _ go 4\n"""
    assert ["go", "4"] in words(text)
