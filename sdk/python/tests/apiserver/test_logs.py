"""Logs of pods, through a real API server and a kubelet that the test plays."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from servers import Operator, wait_until
from test_jobs import create

from openshift_ai_sdk.training import InvalidJobError

START = datetime(2026, 1, 2, 10, 0, 0, tzinfo=timezone.utc)


def test_lines_of_launcher_ranks_and_workers(client: Any, operator: Operator) -> None:
    job = create(client)
    launcher = operator.pod(job, "train-launcher-abc")
    worker = operator.pod(job, "train-worker-1")
    for second, text in enumerate(["start", "[1,0]<stdout>:zero", "[1,1]<stdout>:one", "end"]):
        launcher.say(text, START + timedelta(seconds=second))
    worker.say("of worker 1", START + timedelta(seconds=1, milliseconds=500))
    assert str(job.get_logs()) == "start\nzero\none\nend"
    assert str(job.get_logs(ranks=1)) == "of worker 1\none"
    assert str(job.get_logs(worker_index=1)) == "of worker 1\none"
    assert [str(line) for line in job.get_logs(all_pods=True)] == [
        "[launcher] start",
        "[worker-0 r0] zero",
        "[worker-1 r1] of worker 1",
        "[worker-1 r1] one",
        "[launcher] end",
    ]
    assert str(job.get_logs(tail=1)) == "end"
    assert str(job.get_logs(pattern="^[sz]")) == "start\nzero"
    assert str(job.get_logs(since=START + timedelta(seconds=2))) == "one\nend"
    assert job.get_logs()[2].time == START + timedelta(seconds=2)


def test_lines_by_level_and_until_a_time(client: Any, operator: Operator) -> None:
    job = create(client)
    launcher = operator.pod(job, "train-launcher-abc")
    lines = [
        "INFO start",
        "[1,1]<stdout>:Traceback (most recent call last):",
        "WARNING slow",
        "[1,1]<stdout>:  File x",
        "end",
    ]
    for second, text in enumerate(lines):
        launcher.say(text, START + timedelta(seconds=second))
    assert str(job.get_logs(level="info")) == "INFO start\nTraceback (most recent call last):\nWARNING slow\n  File x"
    assert str(job.get_logs(level="error")) == "Traceback (most recent call last):\n  File x"
    assert str(job.get_logs(until=START + timedelta(seconds=1))) == "\n".join(["INFO start", lines[1][14:]])
    assert str(client.get_job_logs("train", level="warning", until=START + timedelta(seconds=2), tail=4)) == (
        "Traceback (most recent call last):\nWARNING slow"
    )
    # All of it was written long ago.
    assert len(job.get_logs(until="1h")) == len(lines)
    assert len(job.get_logs(until=START - timedelta(seconds=1))) == 0
    for wrong, why in (
        ({"level": "loud"}, "level: 'loud' is not allowed"),
        ({"until": "noon"}, "until: 'noon' is not allowed"),
        ({"until": "1m", "follow": True}, "until: cannot be combined with follow"),
        ({"until": "2h", "since": "1h"}, "is before since; use a later time"),
    ):
        with pytest.raises(InvalidJobError, match=why):
            job.get_logs(**wrong)


def test_following_takes_in_pods_as_they_come_and_ends_with_the_job(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Running")
    launcher = operator.pod(job, "train-launcher-abc")
    launcher.say("first")
    seen = []
    for line in job.get_logs(all_pods=True, follow=True):
        seen.append(str(line))
        if line.text == "first":
            operator.pod(job, "train-worker-0").say("second")
        if line.text == "second":
            launcher.say("last")
            for name in ("train-launcher-abc", "train-worker-0"):
                operator.pod(job, name, "succeeded")
                operator.cluster.kubelet.log(operator.namespace, name).end()
            operator.report(job, "Succeeded")
    assert seen == ["[launcher] first", "[worker-0 r0] second", "[launcher] last"]


def test_cut_connections_lose_and_repeat_nothing(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Running")
    launcher = operator.pod(job, "train-launcher-abc")
    kubelet = operator.cluster.kubelet
    count = 400

    def write() -> None:
        for number in range(count):
            # Many lines of the same moment.
            launcher.say(f"line {number}", START + timedelta(milliseconds=100 * (number // 10)))
            if number % 80 == 40:
                wait_until(lambda: kubelet.readers > 0, "somebody reads")
                launcher.cut()
        operator.pod(job, "train-launcher-abc", "succeeded")
        launcher.end()
        operator.report(job, "Succeeded")

    writer = threading.Thread(target=write)
    writer.start()
    lines = [line.text for line in job.get_logs(follow=True)]
    writer.join()
    assert lines == [f"line {number}" for number in range(count)]


def test_a_reader_that_stops_leaves_nothing_behind(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Running")
    for index in range(3):
        operator.pod(job, f"train-worker-{index}").say("here")
    lines = job.get_logs(all_pods=True, follow=True)
    assert next(lines).text == "here"
    lines.close()
    wait_until(
        lambda: not [each for each in threading.enumerate() if each.name == "openshift-ai-sdk"], "threads have ended"
    )
