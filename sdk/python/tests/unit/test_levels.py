"""Lines have the levels that the command line gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openshift_ai_sdk.training._generated.patterns import LEVELS
from openshift_ai_sdk.training._levels import Levels, level_of, parse_level

GOLDEN = Path(__file__).resolve().parents[4] / "internal" / "logs" / "testdata" / "levels.json"


def test_levels_are_those_of_the_command_line() -> None:
    golden = json.loads(GOLDEN.read_text())
    assert list(golden) == list(LEVELS)
    wrong = {line: (want, got) for want in golden for line in golden[want] if (got := LEVELS[level_of(line)]) != want}
    assert wrong == {}


def test_indented_lines_have_the_level_of_the_ranks_line_before() -> None:
    levels = Levels()
    assert levels.of(1, "Traceback (most recent call last):") == parse_level("error")
    assert levels.of(0, "  step 3") < parse_level("debug")
    assert levels.of(1, '  File "train.py", line 3') == parse_level("error")
    assert levels.of(1, "epoch 4") < parse_level("debug")
    assert levels.of(1, "  loss 0.2") < parse_level("debug")


def test_other_names_of_levels_are_refused() -> None:
    assert parse_level("WARN") == parse_level("warning")
    for name in ("", "loud", 3, None):
        with pytest.raises(ValueError, match="use 'debug', 'info', 'warning' or 'error'"):
            parse_level(name)
