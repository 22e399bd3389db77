"""What logs tell of a training."""

from __future__ import annotations

import json
from pathlib import Path

from openshift_ai_sdk.training import LogLine, _training_history

GOLDEN = Path(__file__).resolve().parents[4] / "internal" / "logs" / "testdata" / "training.json"


def test_lines_are_read_as_by_the_operator() -> None:
    lines = json.loads(GOLDEN.read_text())
    assert {each["line"]: _training_history.parse(each["line"]) for each in lines} == {
        each["line"]: each.get("training", {}) for each in lines
    }


def test_history_is_that_of_rank_0() -> None:
    texts = [
        (None, "start"),
        (0, "epoch=1 loss=0.5 acc=97%"),
        (1, "epoch=1 loss=9"),
        (None, '{"epoch": 2, "loss": 0.25}'),
    ]
    history = _training_history.history([LogLine(text, "pod", "launcher", rank=rank) for rank, text in texts])
    assert [(point.epoch, point.loss, point.accuracy) for point in history] == [(1, 0.5, 0.97), (2, 0.25, None)]
    assert "Accuracy" in history._repr_html_() and "Step" not in history._repr_html_()
