"""What holds for every verb: help works everywhere, usage errors are told on stderr, and as JSON where asked for."""

import json
import re

import pytest


def verbs_of(text: str) -> list[str]:
    _, _, listed = text.partition("Verbs:\n")
    return re.findall(r"^  (\w+) ", listed, re.MULTILINE)


@pytest.fixture
def every_verb(muster):
    """All verbs and what is below them, as lists of words."""
    found, todo = [], [[verb] for verb in verbs_of(muster("help").out)]
    while todo:
        words = todo.pop(0)
        found.append(words)
        todo += [[*words, verb] for verb in verbs_of(muster(*words, "--help").out)]
    return found


def test_alone_it_prints_a_short_overview(muster):
    done = muster()
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) <= 20
    assert "muster run" in done.out


def test_help_works_everywhere_both_ways(muster, every_verb):
    assert ["data", "pack"] in every_verb
    for words in every_verb:
        asked, flag = muster("help", *words), muster(*words, "--help")
        assert (asked.code, flag.code, asked.err, flag.err) == (0, 0, "", ""), words
        assert asked.out == flag.out
        assert "Usage: muster " + " ".join(words) in asked.out


def test_an_unknown_flag_is_a_usage_error(muster, every_verb):
    for words in every_verb:
        done = muster(*words, "--no-such-flag")
        assert (done.code, done.out) == (2, ""), words
        assert done.err.startswith("muster: "), words


def test_usage_errors_are_json_where_asked_for(muster, every_verb):
    for words in every_verb:
        done = muster(*words, "--no-such-flag", "--json")
        assert done.code == 2, words
        assert json.loads(done.out)["error"]["code"] == "invalid", words


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["dta"], "unknown verb 'dta': did you mean 'data'?", "run 'muster help' for the verbs"),
        (["data", "pakc", "a", "b"], "unknown verb 'data pakc': did you mean 'data pack'?", "run 'muster help data'"),
        (["help", "zzzzzzzz"], "unknown verb 'zzzzzzzz'", "muster has data, run, "),
        (["data"], "muster data needs a verb", "pack"),
        (["data", "pack"], "muster data pack needs INPUT and OUT", "run 'muster help data pack'"),
        (["ckpt", "diff", "a"], "muster ckpt diff needs B", "run 'muster help ckpt diff'"),
        (["ckpt", "ls", "a", "b", "c"], "unexpected argument 'b'", "run 'muster help ckpt ls'"),
        (["run", "--rnks", "2", "--", "true"], "unknown option --rnks: did you mean --ranks?", "run 'muster help run'"),
        (["ckpt", "ls", "--jsn"], "unknown option --jsn: did you mean --json?", "run 'muster help ckpt ls'"),
        (["run", "-n", "x", "--", "true"], "--ranks takes a whole number, not 'x'", "run 'muster help run'"),
        (["run", "-n", "99999999999", "--", "true"], "--ranks is 99999999999, which is ", "run 'muster help run'"),
        (["run", "-n", "1", "-n", "2", "--", "true"], "--ranks is given twice", "run 'muster help run'"),
        (["data", "pack", "a", "b", "--on-error", "skp"], "takes stop or skip, not 'skp': did you mean skip?", "pack'"),
        (["data", "pack", "a", "b", "--threads", "257"], "--threads takes a number from 0 to 256, not 257", "pack'"),
        (["data", "pack", "a", "b", "--max-pixels", "0"], "--max-pixels takes a number from 1 to ", "help data pack'"),
        (["data", "pack", "a", "b", "--json=no"], "--json takes no value", "run 'muster help data pack'"),
        (["report", "x", "-o"], "--output needs a value", "run 'muster help report'"),
        (["run", "--stadnalone", "x.py"], "unknown option --stadnalone: did you mean --standalone?", "muster help run"),
        (["run", "--rdzv", "x"], "--rdzv may be --rdzv-backend, --rdzv-endpoint", "write it out"),
        (["help", "run", "extra"], "unexpected argument 'extra'", "run 'muster help run' for the options"),
        (["help", "version"], "unknown verb 'version': did you mean --version?", "run 'muster help' for the verbs"),
        (
            ["--quiet", "run", "t.py"],
            "unknown option --quiet in front of the verb",
            "stand behind its name; run 'muster ",
        ),
        (["train.py", "--lr", "1"], "there is no verb in front of 'train.py'", "muster run train.py --lr 1"),
        (["-n=2", "job.yaml"], "there is no verb in front of '-n=2'", "to run it: muster run -n=2 job.yaml"),
        (["run", "-n=x", "t.py"], "--ranks takes a whole number, not 'x'", "run 'muster help run'"),
        (["run", "-n=", "t.py"], "--ranks needs a value", "run 'muster help run'"),
        (["run", "job.yaml", "x"], "unexpected argument 'x' behind the job file job.yaml", "run 'muster help run'"),
    ],
)
def test_a_wrong_verb_is_named_and_the_right_one_suggested(muster, words, message, hint):
    done = muster(*words)
    assert (done.code, done.out) == (2, "")
    first, last = done.err.splitlines()
    assert first == f"muster: {message}" or (message in first and not message.startswith("unknown")), done.err
    assert hint in last


def test_a_short_option_takes_its_value_in_every_spelling(muster, every_verb):
    tried = 0
    for words in every_verb:
        for letter, name in re.findall(r"^  -(\w), (--[\w-]+) [A-Z]", muster("help", *words).out, re.MULTILINE):
            for given in (f"-{letter}=", f"{name}="):
                done = muster(*words, given, "x")
                assert done.code == 2 and f"{name} needs a value" in done.err, (words, given, done.err)
            tried += 1
    assert tried >= 2
    assert muster("run", "-n=2", "--", "sh", "-c", "echo $WORLD_SIZE").out.count("1] 2\n") == 2


def test_the_version_is_printed(muster):
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", muster("--version").out)


def test_help_and_version_are_json_where_asked_for(muster):
    version = muster("--version").out.strip()
    assert muster("--version", "--json").json() == {"version": version}
    for words in (["help", "run"], ["run", "--help"], ["help"], ["help", "help"]):
        done = muster(*words, "--json")
        assert done.code == 0 and "Usage: muster" in done.json()["help"], words


def test_help_of_help_is_help(muster):
    assert muster("help", "help").out == muster("help").out == muster("--help").out
    assert muster("ckpt", "help", "diff").out == muster("help", "ckpt", "diff").out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["show", "nosuch"], "run folder"),
        (["report", "nosuch"], "run folder"),
        (["run", "nosuch.yaml"], "job file"),
        (["explain", "nosuch.yaml"], "job file"),
        (["ckpt", "ls", "nosuch"], "checkpoint, folder of checkpoints or run folder"),
    ],
)
def test_what_is_absent_is_told_in_one_form(muster, tmp_path, words, what):
    done = muster(*words)
    first, last = done.err.splitlines()
    assert (done.code, done.out, first) == (3, "", f"muster: there is no {what} at {tmp_path / words[-1]}")
    assert last.startswith("  ")


def test_what_is_absent_is_told_with_what_was_meant(muster, tmp_path):
    for name in ("train.py", "job.yaml"):
        (tmp_path / name).write_text("")
    for words, meant in ((["run", "tarin.py"], "train.py"), (["run", "jbo.yaml"], "job.yaml")):
        done = muster(*words)
        assert done.code == 3 and f"{tmp_path / words[-1]}: did you mean {meant}?" in done.err.splitlines()[0]


def test_a_quote_that_is_not_closed_is_refused_where_it_opens(muster, tmp_path):
    job = 'apiVersion: muster/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  command: [a, b]\n  queue: "abc'
    for end in ("", "\n", "\n\n"):
        (tmp_path / "job.yaml").write_text(job + end)
        done = muster("explain", "job.yaml")
        assert (done.code, done.out) == (2, "")
        assert re.match(r"muster: job.yaml:6:\d+: the file ends inside of a quoted text\n  6 [|]   queue: ", done.err)
    (tmp_path / "job.yaml").write_text(job + '"\n')
    assert muster("explain", "job.yaml").code == 0


def test_a_syntax_error_is_told_in_plain_words_with_its_line(muster, tmp_path):
    (tmp_path / "job.yaml").write_text("apiVersion: muster/v1\nkind: Job\nspec:\n  command: [a\n  nodes: 1\n")
    done = muster("explain", "job.yaml")
    assert done.code == 2 and done.out == ""
    first, shown, mark, hint = done.err.splitlines()
    assert first.startswith("muster: job.yaml:5:") and "'[' above is not closed" in first
    assert shown == "  5 |   nodes: 1" and mark.strip().endswith("^")
    assert "job-file.md" in hint
