"""The progress bar, with an API server in memory."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from smallapi import SmallAPI

from openshift_ai_sdk.training import JobStatus, TrainingPoint, _progress_bar
from openshift_ai_sdk.training._status import fraction

pytest.importorskip("tqdm")


def test_the_bar_follows_the_log(
    small_client: Any, small: SmallAPI, monkeypatch: pytest.MonkeyPatch, face: Any
) -> None:
    monkeypatch.setattr(_progress_bar, "INTERVAL", 0.05)
    seen: list[tuple[int, str]] = []
    move = _progress_bar.Bar._move

    def watched(self: Any, done: float | None, text: str | None) -> None:
        move(self, done, text)
        seen.append((self._shown.n, self._shown.postfix))
        # The report says nothing of progress: the operator reads it twice a minute.
        done_now = len({share for share, _ in seen})
        if self._shown.n == 100:
            return
        if done_now == 4:
            small.report(job, "Succeeded")
        else:
            small.pod(
                job, "train-launcher-x", [f"epoch={n} loss=0.5 progress={n}0%" for n in range(done_now + 1)], True
            )

    monkeypatch.setattr(_progress_bar.Bar, "_move", watched)
    job = small_client.create_job("train", container_image="image", command="train.py")
    small.report(job, "Running")
    began = time.monotonic()
    assert job.wait_for_completion(timeout=30, progress=True) == "Succeeded"
    assert [share for share in dict(seen) if share] == [10, 20, 30, 100]
    assert "Running: epoch 2, loss 0.5" in dict(seen).values() and time.monotonic() - began < 20


def test_the_bar_goes_back() -> None:
    shown = SimpleNamespace(n=0, set_postfix_str=lambda *args, **options: None, refresh=lambda: None)
    moved = _progress_bar.Bar(shown)
    seen = []
    moved.show(status_of("Running", "0"))
    for text in ("1", "2", "3"):
        moved.show_point(TrainingPoint(progress=fraction(text)))
        # The operator's figure is older.
        moved.show(status_of("Running", "1"))
        seen.append(shown.n)
    moved.show(status_of("Succeeded", "3"))
    assert (seen, shown.n) == ([100, 2, 3], 100)


def status_of(phase: str, progress: str) -> JobStatus:
    return JobStatus.model_validate(
        {
            "kind": "MPIJob",
            "name": "a",
            "namespace": "b",
            "phase": phase,
            "training": {"progress": progress, "at": "2026-01-02T10:00:00Z"},
        }
    )


def test_without_widgets_no_notebook_warns() -> None:
    program = """
import sys, warnings
sys.modules["ipywidgets"] = None
# What tqdm takes for a notebook.
import IPython
sys.modules["ipykernel.zmqshell"] = IPython
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    from openshift_ai_sdk.training._progress_bar import bar
    with bar("train", True):
        pass
assert not warned, warned[0].message
"""
    pytest.importorskip("IPython")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
