"""Complete logs of jobs that have ended, which an administrator's bucket keeps."""

from __future__ import annotations

import gzip
import json
import warnings
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from smallapi import SmallAPI

from openshift_ai_sdk.training._kept_logs import DamagedLogsError, lines_in, moment, parse_index

START = datetime(2026, 1, 2, 10, 0, 0, tzinfo=timezone.utc)
SIGNATURE = "X-Amz-Signature=5ec2e7"
PLACES = [
    {"role": "launcher", "index": 0, "name": "train-launcher-x", "phase": "Succeeded", "ready": False},
    {"role": "worker", "index": 0, "name": "train-worker-0", "phase": "Gone", "ready": False},
    {"role": "worker", "index": 1, "name": "train-worker-1", "phase": "Gone", "ready": False},
]


def stamp(second: int) -> str:
    return f"{START + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"


class Bucket:
    """Objects that the server of the tests serves besides the API."""

    def __init__(self, small: SmallAPI) -> None:
        self.small = small
        self.pods: dict[str, list[dict[str, Any]]] = {}

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.small.server.server_address[1]}/bucket/{name}/log?{SIGNATURE}"

    def add(self, pod: str, *lines: tuple[int, str]) -> None:
        """Add an object with lines, each with its second."""
        name = f"{pod}-{len(self.pods.get(pod, []))}"
        text = "".join(f"{stamp(at)[:-1]}.000000000Z [{pod}] {line}\n" for at, line in lines)
        self.small.logs[name] = gzip.compress(text.encode())
        part = {"url": self.url(name), "first": stamp(lines[0][0]), "last": stamp(lines[-1][0]), "lines": len(lines)}
        self.pods.setdefault(pod, []).append(part)

    def finished(self, client: Any, **kept: Any) -> Any:
        """Return a job that has succeeded, whose report has the address of the index."""
        index = {"pods": [{"name": pod, "parts": parts} for pod, parts in self.pods.items()]}
        self.small.logs["index"] = json.dumps(index).encode()
        job = client.create_job("train", container_image="image", command="mpirun --tag-output train.py", num_workers=2)
        self.report(job, **kept)
        return job

    def report(self, job: Any, **kept: Any) -> None:
        """Write the report of a job, with the address of the index."""
        self.small.report(
            job,
            "Succeeded",
            pods=PLACES,
            mpi={"slotsPerWorker": 1, "ranks": 2},
            workers={"summary": "2", "wanted": 2, "ready": 0, "running": 0, "succeeded": 0, "failed": 0},
            failure={"code": "Unknown", "logTail": ["[train-launcher-x] the tail"]},
            completeLogs={"index": self.url("index"), "expires": "2126-01-02T10:00:00Z", **kept},
        )

    def read(self) -> list[str]:
        """Return which objects were read since the last call."""
        read = [path.split("/")[2] for _, path in self.small.requests if path.startswith("/bucket/")]
        self.small.requests.clear()
        return read


@pytest.fixture
def bucket(small: SmallAPI) -> Bucket:
    made = Bucket(small)
    made.add("train-launcher-x", (0, "start"), (2, "[1,1]<stdout>:ValueError: one"))
    made.add("train-launcher-x", (4, "[1,0]<stdout>: zero"), (6, "end"))
    made.add("train-worker-0", (1, "of worker 0"))
    made.add("train-worker-1", (3, "of worker 1"), (5, "bye"))
    return made


def test_all_lines_are_read(small_client: Any, small: SmallAPI, bucket: Bucket) -> None:
    job = bucket.finished(small_client)
    # A pod that is still there may have lost its first lines.
    small.pod(job, "train-launcher-x", ["end"])
    lines = "start\nof worker 0\nValueError: one\nof worker 1\nzero\nbye\nend"
    assert str(job.get_logs(all_pods=True)) == lines
    assert str(job.get_logs()) == "start\nValueError: one\nzero\nend"
    assert str(job.get_logs(ranks=1)) == str(job.get_logs(worker_index=1)) == "ValueError: one\nof worker 1\nbye"
    assert str(job.get_logs(level="error")) == "ValueError: one"
    assert "".join(line.text for line in job.get_logs(follow=True)) == "startValueError: onezeroend"
    small_client.delete_job("train")
    assert str(job.get_logs(all_pods=True)) == lines


def test_only_objects_that_are_needed_are_read(small_client: Any, bucket: Bucket) -> None:
    job = bucket.finished(small_client)
    bucket.read()
    assert str(job.get_logs(tail=1)) == "end"
    assert bucket.read() == ["index", "train-launcher-x-1"]
    assert str(job.get_logs(all_pods=True, tail=1)) == "of worker 0\nbye\nend"
    assert bucket.read() == ["index", "train-launcher-x-1", "train-worker-0-0", "train-worker-1-0"]
    assert str(job.get_logs(all_pods=True, until=START + timedelta(seconds=2))) == "start\nof worker 0\nValueError: one"
    assert bucket.read() == ["index", "train-launcher-x-0", "train-worker-0-0"]
    assert str(job.get_logs(since=START + timedelta(seconds=5))) == "end"
    assert bucket.read() == ["index", "train-launcher-x-1"]


def test_what_is_missing_is_told(small_client: Any, bucket: Bucket) -> None:
    job = bucket.finished(small_client, podsCut=2, podsUnread=1, message="its log was deleted")
    with pytest.warns(UserWarning, match="lines of 2 pods may be missing; the logs of 1 pod could .*; its log was del"):
        job.get_logs()


def test_the_tail_is_read_instead(small_client: Any, small: SmallAPI, bucket: Bucket) -> None:
    job = bucket.finished(small_client)
    small.fails = lambda method, path: (403, {}) if "launcher-x-1" in path else None
    with pytest.warns(
        UserWarning, match="complete logs cannot be read .the server answers with the status 403"
    ) as told:
        assert str(job.get_logs()) == "the tail"
    assert not any(SIGNATURE in str(each.message) for each in told)
    small.fails = lambda method, path: None
    small.logs["index"] = b"{}"
    with pytest.warns(UserWarning, match="the complete logs are damaged"):
        assert str(job.get_logs()) == "the tail"
    # Logs that are deleted are not asked for.
    bucket.report(job, expires="2026-01-02T10:00:00Z")
    bucket.read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(job.get_logs()) == "the tail"
    assert bucket.read() == []


def test_errors_do_not_contain_the_signature(small_client: Any, small: SmallAPI) -> None:
    job = small_client.create_job("train", container_image="image", command="true", num_workers=1)
    index = f"http://127.0.0.1:1/index?{SIGNATURE}"
    small.report(job, "Succeeded", completeLogs={"index": index, "expires": "2126-01-02T10:00:00Z"})
    with pytest.warns(UserWarning, match="127.0.0.1:1 does not answer") as told:
        job.get_logs()
    assert not any(SIGNATURE in str(each.message) for each in told)


def test_damaged_objects() -> None:
    assert moment("2026-01-02T10:00:00.123456789Z").microsecond == 123456
    for index in (b"", b"[]", b'{"pods": [{"name": "a"}]}', b'{"pods": [{"name": "a", "parts": [{"url": "x"}]}]}'):
        with pytest.raises(DamagedLogsError):
            parse_index(index)
    for data in (b"no gzip", gzip.compress(b"no time [pod] text\n"), gzip.compress(b"x" * (9 << 20))):
        with pytest.raises(DamagedLogsError):
            lines_in(data)
