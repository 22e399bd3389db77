"""Logs of pods that are gone, as the report of the job has kept them."""

from __future__ import annotations

import gzip
import warnings
from base64 import b64encode
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from smallapi import PODS, SmallAPI

from openshift_ai_sdk.training._kept_logs import MOST_TEXT, DamagedLogsError, unpack

START = datetime(2026, 1, 2, 10, 0, 0, tzinfo=timezone.utc)
LINES = [
    "2026-01-02T10:00:00.000000000Z [train-launcher-x] start",
    "2026-01-02T10:00:01.000000000Z [train-worker-0] of worker 0",
    "2026-01-02T10:00:02.000000000Z [train-launcher-x] [1,1]<stdout>:ValueError: one",
    "2026-01-02T10:00:02.500000000Z [train-worker-1] of worker 1",
    "2026-01-02T10:00:03.000000000Z [train-launcher-x] end",
]
PLACES = [
    {"role": "launcher", "index": 0, "name": "train-launcher-x", "phase": "Succeeded", "ready": False},
    {"role": "worker", "index": 0, "name": "train-worker-0", "phase": "Gone", "ready": False},
    {"role": "worker", "index": 1, "name": "train-worker-1", "phase": "Gone", "ready": False},
]


def packed(*lines: str) -> str:
    return b64encode(gzip.compress("".join(f"{line}\n" for line in lines).encode())).decode()


def finished(client: Any, small: SmallAPI, **logs: Any) -> Any:
    job = client.create_job("train", container_image="image", command="mpirun --tag-output train.py", num_workers=2)
    small.report(
        job,
        "Succeeded",
        pods=PLACES,
        mpi={"slotsPerWorker": 1, "ranks": 2},
        workers={"summary": "2", "wanted": 2, "ready": 0, "running": 0, "succeeded": 0, "failed": 0},
        logs={"data": packed(*LINES), "lines": 5, "pods": 3, **logs},
    )
    return job


def test_logs_of_pods_that_are_gone(small_client: Any, small: SmallAPI) -> None:
    job = finished(small_client, small)
    assert str(job.get_logs()) == "start\nValueError: one\nend"
    assert str(job.get_logs(all_pods=True)) == "start\nof worker 0\nValueError: one\nof worker 1\nend"
    assert str(job.get_logs(worker_index=1)) == str(job.get_logs(ranks=1)) == "ValueError: one\nof worker 1"
    assert str(job.get_logs(all_pods=True, tail=1)) == "of worker 0\nof worker 1\nend"
    assert str(job.get_logs(level="error")) == "ValueError: one"
    second = timedelta(seconds=1)
    assert str(job.get_logs(since=START + second, until=START + 2 * second)) == "ValueError: one"
    assert job.get_logs()[0].time == START
    small_client.delete_job("train")
    assert str(job.get_logs(worker_index=0)) == "of worker 0"


def test_workers_are_gone_and_the_launcher_is_not(small_client: Any, small: SmallAPI) -> None:
    job = finished(small_client, small, podsCut=2, podsUnread=1, omitted="pod train-worker-9: its log was deleted")
    small.pod(job, "train-launcher-x", ["start", "middle"])
    with pytest.warns(UserWarning, match="lines of 2 pods are kept; the logs of 1 pod could .* its log was deleted"):
        assert str(job.get_logs(all_pods=True)) == "start\nmiddle\nof worker 0\nof worker 1"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(job.get_logs()) == "start\nmiddle"
    assert f"{PODS}/train-launcher-x" in small.objects


def test_logs_that_are_damaged(small_client: Any, small: SmallAPI) -> None:
    job = finished(small_client, small, data="bm8gZ3ppcA==")
    with pytest.warns(UserWarning, match="the logs in the job's report are damaged"):
        assert len(job.get_logs()) == 0
    bomb = b64encode(gzip.compress(b"x" * (MOST_TEXT + 1))).decode()
    for data in ("no base64!", bomb, packed("no time [pod] text"), packed(LINES[0])[:-12] + "AAAA", packed("[a] b")):
        with pytest.raises(DamagedLogsError):
            unpack({"data": data})
    assert unpack({}) == []
