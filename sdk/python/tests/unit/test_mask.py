"""Secrets are masked as the command line masks them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from openshift_ai_sdk.training import _mask
from openshift_ai_sdk.training._mask import MASKED, Masker

GOLDEN = Path(__file__).resolve().parents[4] / "internal" / "logs" / "testdata" / "mask.json"


def test_logs_are_masked_as_by_the_command_line() -> None:
    wrong = []
    for log in json.loads(GOLDEN.read_text()):
        masker = Masker.of(log["whole"])
        for line, want in zip(log["lines"], log["masked"], strict=True):
            got = masker.line(line)
            if got != want:
                wrong.append((line, want, got))
    assert wrong == []


def test_long_lines_take_no_time_and_are_masked_to_their_end() -> None:
    for filler in ("a-", "login x ", "mysql x ", "--a", "password=", "[1,0]", "a:", "/a.b", "key "):
        line = filler * ((64 << 10) // len(filler)) + " password=hunter2"
        began = time.process_time()
        masked = Masker().line(line)
        assert time.process_time() - began < 3, filler
        assert "hunter2" not in masked and MASKED in masked


def test_a_secret_that_is_longer_than_a_part_is_masked_whole() -> None:
    masked = Masker().line("x " * 5000 + "password=" + "S3cret" * 5000 + " epoch=1")
    assert "S3cret" not in masked and masked.endswith(" epoch=1")


def test_a_secret_at_the_end_of_a_part_is_masked() -> None:
    end = '"password":"hunter2","token":"hunter3"}'
    for before in range(1, len(end)):
        # A line without blanks, as of JSON, in which the first part may end within a secret or its name.
        fields = '{"n":' + "1," + '"n":1,' * (_mask.LONGEST_PART // 6 - 10)
        last = '"m":' + "1" * (_mask.LONGEST_PART - before - len(fields) - len('"m":,')) + ","
        masked = Masker().line(fields + last + end + ' "more"')
        assert len(fields + last) == _mask.LONGEST_PART - before
        assert "hunter" not in masked, before


def test_most_lines_are_passed_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for each in _mask.ALL:
        monkeypatch.setitem(each.__dict__, "hint", asked.append)
    assert _mask.mask_settings("epoch=3 step=1200 loss=0.1234 acc=0.9") == "epoch=3 step=1200 loss=0.1234 acc=0.9"
    # A hint for each rule takes longer than all else that is done to a line.
    assert asked == []
