"""What holds for every verb: help works everywhere, usage errors are told on stderr, and as JSON where asked for."""

import json
import re

import pytest


def verbs_of(text: str) -> list[str]:
    _, _, listed = text.partition("Subcommands:\n")
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
        (["dta"], "muster has no verb 'dta'", "did you mean 'muster data'?"),
        (["data", "pakc", "a", "b"], "muster data has no verb 'pakc'", "did you mean 'muster data pack'?"),
        (["help", "zzzzzzzz"], "muster has no verb 'zzzzzzzz'", "it has "),
        (["data"], "muster data needs a verb", "pack"),
        (["data", "pack"], "required", "run 'muster help data pack'"),
    ],
)
def test_a_wrong_verb_is_named_and_the_right_one_suggested(muster, words, message, hint):
    done = muster(*words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert hint in done.err


def test_the_version_is_printed(muster):
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", muster("--version").out)
