"""Complete logs of jobs that have ended, which an administrator's bucket keeps."""

from __future__ import annotations

import gzip
import json
import time
import warnings
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from smallapi import SmallAPI

from openshift_ai_sdk.training import _logs
from openshift_ai_sdk.training._kept_logs import DamagedLogsError, lines_in, moment, parse_index
from openshift_ai_sdk.training._logs import runs_of
from openshift_ai_sdk.training.errors import TrainingError

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
        """Return which objects were read since the last call; several are read at once."""
        read = [path.split("/")[2] for _, path in self.small.requests if path.startswith("/bucket/")]
        self.small.requests.clear()
        return sorted(read)


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


def test_what_fails_for_a_moment_is_read_again(small_client: Any, small: SmallAPI, bucket: Bucket) -> None:
    job = bucket.finished(small_client)
    failures = {"index": [503], "train-launcher-x-0": [429, 500], "train-worker-1-0": [0, 503]}

    def fails(method: str, path: str) -> tuple[int, Any] | None:
        left = failures.get(path.split("/")[2]) if path.startswith("/bucket/") else None
        code = left.pop(0) if left else None
        if code == 0:
            raise ConnectionResetError
        return None if code is None else (code, {})

    small.fails = fails
    assert str(job.get_logs(all_pods=True)) == "start\nof worker 0\nValueError: one\nof worker 1\nzero\nbye\nend"
    assert not any(failures.values())
    failures["train-launcher-x-1"] = [503] * 9
    with pytest.warns(UserWarning, match="the server answers with the status 503"):
        assert str(job.get_logs()) == "the tail"
    assert len(failures["train-launcher-x-1"]) == 6


def test_an_object_that_stalls_is_read_again(
    small_client: Any, small: SmallAPI, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_logs, "FETCH_TIMEOUT", 0.3)
    job = bucket.finished(small_client)
    small.stalls = {"/bucket/train-launcher-x-0/log"}
    assert str(job.get_logs(all_pods=True)).startswith("start\nof worker 0\n")
    assert not small.stalls


def test_lines_are_yielded_before_all_objects_are_read(small_client: Any, small: SmallAPI, bucket: Bucket) -> None:
    for part in range(40):
        bucket.add("train-launcher-x", (10 + part, f"line {part}"))
    job = bucket.finished(small_client)
    bucket.read()
    lines = job.get_logs(follow=True, all_pods=True)
    assert next(lines).text == "start"
    assert len(bucket.read()) < 12
    assert [line.text for line in lines][-1] == "line 39"
    # Few connections are opened for many objects.
    assert len(small.connections) < 20
    # What has begun is not followed by something else.
    small.fails = lambda method, path: (403, {}) if "launcher-x-40" in path else None
    lines = job.get_logs(follow=True)
    assert next(lines).text == "start"
    with pytest.raises(TrainingError, match=r"the rest of the complete logs cannot be read: .* status 403"):
        list(lines)
    small.fails = lambda method, path: (403, {}) if path.startswith("/bucket/") else None
    with pytest.warns(UserWarning, match="complete logs cannot be read"):
        assert [line.text for line in job.get_logs(follow=True)] == ["the tail"]


def test_reading_can_be_given_up(small_client: Any, small: SmallAPI, bucket: Bucket) -> None:
    job = bucket.finished(small_client)
    small.stalls = {"/bucket/train-launcher-x-1/log"}
    lines = job.get_logs(follow=True)
    assert next(lines).text == "start"
    before = time.monotonic()
    lines.close()
    assert time.monotonic() - before < 5


def test_the_address_is_in_nothing_that_is_printed(small_client: Any, bucket: Bucket) -> None:
    status = bucket.finished(small_client, lines=7).get_status()
    assert status.complete_logs.lines == 7
    for text in (repr(status.complete_logs), str(status.model_dump()), status.model_dump_json()):
        assert SIGNATURE not in text


def test_runs_are_told_apart_by_their_containers() -> None:
    def pod(status: dict[str, Any]) -> dict[str, Any]:
        return {
            "metadata": {"uid": "u"},
            "spec": {"containers": [{"name": "main"}]},
            "status": {"containerStatuses": [{"name": "main", **status}]},
        }

    ended = {"terminated": {"containerID": "b", "startedAt": "2026-01-02T10:00:00Z"}}
    running = {"running": {}}
    earlier = {"terminated": {"containerID": "a"}}
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}
    for status, runs in (
        (
            {
                "restartCount": 1,
                "containerID": "b",
                "state": running,
                "lastState": earlier,
            },
            ("u/b", "u/a", False),
        ),
        ({"restartCount": 1, "state": ended, "lastState": earlier}, ("u/b", "u/a", True)),
        # The run that has ended is the one that was seen as the present one.
        ({"restartCount": 1, "containerID": "b", "state": waits, "lastState": ended}, (None, "u/b", False)),
        ({"restartCount": 1, "state": waits, "lastState": {"terminated": {"exitCode": 1}}}, (None, "u/1", False)),
        ({"restartCount": 1, "state": running}, ("u/1", None, False)),
    ):
        assert runs_of(pod(status)) == runs
