"""Waiting, and many jobs at a time, with an API server in memory."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from smallapi import JOBS, REPORTS, TRAIN_JOBS, SmallAPI

from openshift_ai_sdk.training import (
    APIError,
    ClusterUnreachableError,
    JobBlockedError,
    JobExistsError,
    JobNotFoundError,
    JobRefusedError,
    JobStatus,
    JobTimeoutError,
    MPIJobFailed,
    NamespaceNotFoundError,
    NotLoggedInError,
    NotSupportedError,
    PermissionDeniedError,
    RetryPolicy,
    TrainingError,
    _apiserver,
    _many,
)
from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training._driver import ConnectionLostError, Request
from openshift_ai_sdk.training._driver_asyncio import AsyncDriver
from openshift_ai_sdk.training._driver_blocking import BlockingDriver, run
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._kinds import JOB_REPORT

PACKAGE = Path(__file__).resolve().parents[2]
PULL = {
    "code": "ImagePullFailed",
    "severity": "Error",
    "summary": "The image quay.io/me/trian cannot be pulled.",
    "remedies": [{"text": "Correct the name of the image."}],
}


def make(client: Any, name: str = "train") -> Any:
    return client.create_job(name, container_image="image", command="train.py")


def unmade(face: Any, client: Any, count: int) -> list[Any]:
    bare = getattr(client, "value", client)
    return [face.MPIJob(f"job-{number}", image="image", command="train.py", client=bare) for number in range(count)]


def test_a_job_that_cannot_go_on_is_told_once(small_client: Any, small: SmallAPI) -> None:
    job = make(small_client)
    small.report(job, "Initializing", findings=[PULL])

    def go_on() -> None:
        for second in range(3):
            small.report(job, "Initializing", findings=[PULL], message=str(second))
            time.sleep(0.1)
        small.report(job, "Succeeded")

    threading.Timer(0.3, go_on).start()
    with pytest.warns(UserWarning, match="is Initializing and cannot go on: ImagePullFailed: The image") as warned:
        assert job.wait_for_completion(timeout=20) == "Succeeded"
    assert len(warned) == 1 and "job.explain() shows what to do" in str(warned[0].message)


def test_a_job_that_cannot_go_on_raises_if_wanted(small_client: Any, small: SmallAPI) -> None:
    job = make(small_client)
    small.report(job, "Initializing", findings=[PULL])
    with pytest.raises(JobBlockedError, match=r"cannot go on: ImagePullFailed: .*\n  1\. Correct the name") as caught:
        job.wait_for_completion(timeout=20, raise_if_blocked=True)
    assert caught.value.cause.code == "ImagePullFailed" and caught.value.status == "Initializing"


def test_what_may_pass_is_no_warning(small_client: Any, small: SmallAPI, recwarn: Any) -> None:
    job = make(small_client)
    small.report(job, "Initializing", findings=[{**PULL, "severity": "Warning"}])
    with pytest.raises(JobTimeoutError):
        job.wait_for_completion(timeout=0.5, raise_if_blocked=True)
    assert not list(recwarn)


def test_changes_are_those_that_there_are() -> None:
    status = JobStatus.model_validate(
        {"kind": "MPIJob", "name": "a", "namespace": "b", "phase": "Failed", "findings": [PULL]}
    )
    assert MPIJobFailed(status, [None]).changes == []
    two = status.model_copy(
        update={"findings": [status.findings[0].model_copy(update={"remedies": status.remedies * 2})]}
    )
    failure = MPIJobFailed(two, [None, {"image": "right"}])
    assert failure.changes == [{"image": "right"}]
    assert "  2. Correct the name of the image.\n     job.clone(image='right')" in str(failure)


def test_the_documented_use_of_changes_is_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(
        """
from openshift_ai_sdk.training import Explanation, MPIJob, MPIJobFailed, __version__

def lines(job: MPIJob, follow: bool) -> list[str]:
    return [line.text for line in job.get_logs(follow=follow)] + [__version__]

def use(job: MPIJob, failure: MPIJobFailed, explanation: Explanation) -> bool:
    if failure.changes:
        job.clone(**failure.changes[0])
    job.clone(**explanation.changes[0])
    final_status = job.wait_for_completion(timeout=7200)
    lines(job, True)
    return final_status == "Succeeded" or final_status in ["Succeeded", "Failed"]
"""
    )
    options = [
        "--strict",
        "--config-file",
        str(PACKAGE / "pyproject.toml"),
        "--cache-dir",
        str(PACKAGE / ".mypy_cache"),
    ]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(tmp_path / "use.py")], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout


def test_names_that_do_not_exist_are_not_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text("from openshift_ai_sdk import no\nfrom openshift_ai_sdk.training import MPIJbo\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(PACKAGE / "pyproject.toml"), str(tmp_path / "use.py")]
    found = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True)
    assert 'no attribute "no"' in found.stdout and 'no attribute "MPIJbo"' in found.stdout


def test_waiting_for_many_tells_which_are_late(small_client: Any, small: SmallAPI) -> None:
    jobs = [make(small_client, f"job-{number}") for number in range(14)]
    for job in jobs[:2]:
        small.report(job, "Succeeded")
    for job in jobs[2:]:
        small.report(job, "Running")
    with pytest.raises(JobTimeoutError) as caught:
        small_client.wait_for_jobs(jobs, timeout=1)
    text = str(caught.value)
    assert text.startswith("12 of 14 jobs did not finish within 1 s: job-2 (Running), job-3 (Running), ")
    assert "job-11 (Running), and 2 more; they continue" in text
    assert [status.name for status in caught.value.statuses] == [job.name for job in jobs]
    assert [status.name for status in caught.value.statuses if status == "Succeeded"] == ["job-0", "job-1"]


def test_waiting_ends_when_the_job_and_its_report_are_deleted(small_client: Any, small: SmallAPI) -> None:
    job = make(small_client)

    def forget() -> None:
        for path in [path for path in small.objects if path.startswith((JOBS, REPORTS))]:
            small.remove(path)

    for wait in (job.wait_for_completion, lambda timeout: small_client.wait_for_jobs([job], timeout=timeout)):
        small.put(JOBS, {**job.manifest, "metadata": job.manifest["metadata"]})
        small.report(job, "Running")
        threading.Timer(0.3, forget).start()
        began = time.monotonic()
        with pytest.raises(JobNotFoundError, match="was deleted"):
            wait(timeout=30)
        assert time.monotonic() - began < 10


def test_jobs_of_several_namespaces_are_awaited_side_by_side(small_client: Any, small: SmallAPI) -> None:
    jobs = [
        small_client.create_job("train", container_image="image", command="train.py", namespace=namespace)
        for namespace in ("default", "other", "third")
    ]
    small.report(jobs[0], "Running")
    small.report(jobs[2], "Failed")
    threading.Timer(0.3, lambda: small.report(jobs[1], "Succeeded")).start()
    with pytest.raises(JobTimeoutError, match=r"1 of 3 jobs did not finish within 1 s: train \(Running\)") as caught:
        small_client.wait_for_jobs(jobs, timeout=1)
    assert [status.phase for status in caught.value.statuses] == ["Running", "Succeeded", "Failed"]
    small.report(jobs[0], "Succeeded")
    statuses = small_client.wait_for_jobs(jobs, timeout=20)
    assert [(status.namespace, status.phase) for status in statuses] == [
        ("default", "Succeeded"),
        ("other", "Succeeded"),
        ("third", "Failed"),
    ]


def test_a_timeout_of_zero_reads_once(small_client: Any, small: SmallAPI) -> None:
    job = make(small_client)
    small.report(job, "Running")
    for wait in (job.wait_for_completion, lambda timeout: small_client.wait_for_jobs([job], timeout=timeout)):
        with pytest.raises(JobTimeoutError, match="within 0 s") as caught:
            wait(timeout=0)
        assert caught.value.status == "Running"
    small.report(job, "Succeeded")
    assert job.wait_for_completion(timeout=0) == "Succeeded"
    assert [status.phase for status in small_client.wait_for_jobs([job], timeout=0)] == ["Succeeded"]


@pytest.mark.parametrize("slow", [JOBS, REPORTS])
def test_a_slow_server_does_not_stretch_a_timeout(face: Any, small_client: Any, small: SmallAPI, slow: str) -> None:
    make(small_client, "job-0")
    (job,) = unmade(face, small_client, 1)
    small.fails = lambda method, path: time.sleep(10) if path.startswith(slow) else None  # type: ignore[func-returns-value]
    for wait in (job.wait_for_completion, lambda timeout: small_client.wait_for_jobs([job], timeout=timeout)):
        began = time.monotonic()
        with pytest.raises(JobTimeoutError):
            wait(timeout=0.5)
        assert time.monotonic() - began < 5


def test_a_watch_that_ends_at_once_is_opened_again_after_a_pause(small_client: Any, small: SmallAPI) -> None:
    job = make(small_client)
    small.requests.clear()

    def fails(method: str, path: str) -> tuple[int, Any] | None:
        asked = [each for _, each in small.requests if each == REPORTS]
        return (200, b"") if path == REPORTS and len(asked) > 1 else None

    small.fails = fails
    with pytest.raises(JobTimeoutError):
        job.wait_for_completion(timeout=2)
    assert 2 < len([each for _, each in small.requests if each == REPORTS]) < 10


@pytest.mark.parametrize("answers", [True, False])
def test_a_warning_does_not_show_the_address_of_a_webhook(small_client: Any, small: SmallAPI, answers: bool) -> None:
    job = make(small_client)
    small.report(job, "Succeeded")
    small.fails = lambda method, path: (403, {}) if path.startswith("/hook") else None
    host = f"127.0.0.1:{small.server.server_address[1] if answers else 1}"
    with pytest.warns(UserWarning, match=f"the webhook at {host} was not notified that mpijob/train") as warned:
        job.wait_for_completion(timeout=30, webhook=f"http://me:secret@{host}/hook/secret?token=secret")
    assert not [each for each in warned if "secret" in str(each.message)]


def test_many_jobs_are_deleted_side_by_side(small_client: Any, small: SmallAPI) -> None:
    jobs = [make(small_client, f"job-{number}") for number in range(16)]
    small.delay = 0.3
    began = time.monotonic()
    small_client.delete_jobs(jobs)
    # One after another they take 4.8 s.
    assert time.monotonic() - began < 3 and not [path for path in small.objects if path.startswith(JOBS)]


def test_a_bulk_creation_names_all_that_exist(face: Any, small_client: Any, small: SmallAPI) -> None:
    for number in (1, 3, 4):
        make(small_client, f"job-{number}")
    jobs = unmade(face, small_client, 20)
    with pytest.raises(JobExistsError) as caught:
        small_client.create_jobs(jobs)
    text = str(caught.value)
    assert text.startswith("3 of 20 jobs were not created: job-1, job-3, job-4; the other 17 were created\n  - job-1: ")
    assert len([path for path in small.objects if path.startswith(JOBS)]) == 20
    assert jobs[0].manifest["metadata"]["uid"] and "uid" not in jobs[1].manifest["metadata"]


def test_errors_that_all_jobs_have_end_a_bulk_creation(face: Any, small_client: Any, small: SmallAPI) -> None:
    denied = {"message": 'User "ann" cannot create resource "mpijobs" in API group "kubeflow.org"'}
    small.fails = lambda method, path: (403, denied) if method == "POST" else None
    with pytest.raises(PermissionDeniedError, match="may not create"):
        small_client.create_jobs(unmade(face, small_client, 50))
    assert len([method for method, _ in small.requests if method == "POST"]) <= 16


def created_before(small: SmallAPI, code: int, count: int) -> None:
    """Answer further creations with a code once so many were made."""
    made: list[str] = []

    def fails(method: str, path: str) -> tuple[int, Any] | None:
        if method != "POST":
            return None
        made.append(path)
        return (code, {"message": "refused"}) if len(made) > count else None

    small.fails = fails


@pytest.mark.parametrize(("code", "kind"), [(500, APIError), (504, ClusterUnreachableError), (401, NotLoggedInError)])
def test_what_was_created_before_an_error_is_known(
    face: Any, small_client: Any, small: SmallAPI, code: int, kind: type[TrainingError]
) -> None:
    jobs = unmade(face, small_client, 20)
    created_before(small, code, 5)
    with pytest.raises(kind, match=r"15 of 20 jobs were not created: .*; the other 5 were created"):
        small_client.create_jobs(jobs)
    assert len([path for path in small.objects if path.startswith(JOBS)]) == 5
    assert len([job for job in jobs if "uid" in job.manifest["metadata"]]) == 5
    # A rejected login is asked for again, once for each of the calls that run at a time.
    posts = len([method for method, _ in small.requests if method == "POST"])
    assert posts == 20 if code != 401 else posts <= 5 + 2 * 8


def test_a_job_whose_name_another_one_has_is_gone(small_client: Any, small: SmallAPI) -> None:
    jobs = [make(small_client, f"job-{number}") for number in range(3)]
    conflict = (409, {"reason": "Conflict", "message": "the UID in the precondition does not match"})
    small.fails = lambda method, path: conflict if method == "DELETE" and path.endswith("job-1") else None
    small_client.delete_jobs(jobs)
    assert [path for path in small.objects if path.startswith(JOBS)] == [f"{JOBS}/job-1"]


def test_jobs_of_the_same_name_are_counted(face: Any, small_client: Any, small: SmallAPI) -> None:
    bare = getattr(small_client, "value", small_client)
    places = [("a", "train"), ("b", "train"), ("b", "other"), ("c", "train")]
    jobs = [face.MPIJob(name, place, image="image", command="train.py", client=bare) for place, name in places]
    refused = (422, {"message": "refused"})
    small.fails = lambda method, path: refused if method == "POST" and "/c/" not in path else None
    with pytest.raises(JobRefusedError, match="3 of 4 jobs were not created: a/train, b/train, other; the other 1"):
        small_client.create_jobs(jobs)


def test_a_job_that_is_named_twice_is_counted_twice() -> None:
    ref, train_job = JobRef("MPIJob", "a", "train"), JobRef("TrainJob", "a", "train")
    assert _many.names_of([ref, train_job]) == ["a/mpijob/train", "a/trainjob/train"]
    assert _many.names_of([ref, ref]) == ["a/mpijob/train (1)", "a/mpijob/train (2)"]


def test_one_job_alone_keeps_its_error(face: Any, small_client: Any, small: SmallAPI) -> None:
    make(small_client, "job-0")
    with pytest.raises(JobExistsError, match="already exists: take another name"):
        small_client.create_jobs(unmade(face, small_client, 1))


def test_a_namespace_that_does_not_exist_is_told(face: Any, small_client: Any, small: SmallAPI) -> None:
    missing = {"reason": "NotFound", "message": "...", "details": {"name": "nowhere", "kind": "namespaces"}}
    small.fails = lambda method, path: (404, missing) if method == "POST" else None
    with pytest.raises(NamespaceNotFoundError, match="the namespace 'nowhere' does not exist on http://"):
        make(small_client)


def test_one_job_alone_is_created(face: Any, small_client: Any) -> None:
    (job,) = unmade(face, small_client, 1)
    assert [each.name for each in small_client.create_jobs(job)] == ["job-0"]


def test_a_job_without_a_report_has_no_events(small_client: Any) -> None:
    job = make(small_client)
    assert list(job.stream_events(follow=False)) == []
    job.delete()
    with pytest.raises(JobNotFoundError, match="was deleted"):
        list(job.stream_events(follow=False))


def test_a_name_of_two_jobs_is_told(face: Any, small_client: Any, small: SmallAPI) -> None:
    train_job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "train"}}
    small.put(TRAIN_JOBS, {**train_job, "spec": {"runtimeRef": {"name": "mpi"}}})
    make(small_client)
    bare = getattr(small_client, "value", small_client)
    with pytest.raises(JobNotFoundError, match=r"TrainingClient\(\).get_job\('train', 'default', job_kind='MPIJob'\)"):
        face.MPIJob.get("train", client=bare)
    assert small_client.get_job("train", "default", job_kind="TrainJob").kind == "TrainJob"


def test_a_job_that_was_only_described_is_told(face: Any, small_client: Any) -> None:
    job = unmade(face, small_client, 1)[0]
    with pytest.raises(JobNotFoundError, match="does not exist in the namespace default"):
        list(job.stream_events(follow=False))
    for call in (job.get_status, job.wait_for_completion):
        with pytest.raises(
            JobNotFoundError, match=r"does not exist in the namespace default; job.create\(\) creates it"
        ):
            call()


@pytest.mark.parametrize(("call", "word"), [("suspend", "suspended"), ("resume", "resumed")])
def test_a_job_that_is_finished_stays(call: str, word: str, small_client: Any, small: SmallAPI) -> None:
    job = make(small_client)
    small.put(JOBS, {**job.manifest, "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}})
    with pytest.raises(TrainingError, match=f"is finished and cannot be {word}: "):
        getattr(job, call)()


def test_a_list_decodes_no_status_before_it_is_shown(
    small_client: Any, small: SmallAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        small.report(make(small_client, f"train-{number}"), "Failed" if number == 7 else "Running", message="x")
    decoded: list[str] = []
    validate = JobStatus.from_report

    def counted(report: Any, cluster: str = "") -> JobStatus:
        decoded.append(report["spec"]["jobRef"]["name"])
        return validate(report, cluster)

    monkeypatch.setattr(JobStatus, "from_report", counted)
    small.requests.clear()
    jobs = small_client.list_jobs()
    assert len(jobs) == 20 and len(small.requests) == 3
    (failed,) = small_client.list_jobs(phase="Failed")
    assert failed.name == "train-7" and decoded == []
    assert "Failed" in repr(failed) and repr(failed) == repr(failed) and decoded == ["train-7"]


def test_list_jobs_reads_all_kinds_at_once(small_client: Any, small: SmallAPI) -> None:
    small.report(make(small_client), "Running")
    waiting = threading.Barrier(3)

    def wait_for_others(method: str, path: str) -> None:
        waiting.wait(10)

    small.fails = wait_for_others
    assert [job.name for job in small_client.list_jobs()] == ["train"] and not waiting.broken
    # What is gone is seen by reports that are older than the list of jobs.
    small.fails = lambda method, path: None
    small.requests.clear()
    small.remove(f"{JOBS}/train")
    assert [job.name for job in small_client.list_jobs(deleted=True)] == ["train"]
    assert [path for _, path in small.requests] == [REPORTS, JOBS, TRAIN_JOBS]


def test_list_jobs_raises_the_same_error_each_time(small_client: Any, small: SmallAPI) -> None:
    def refuse(method: str, path: str) -> tuple[int, dict[str, Any]]:
        time.sleep(0.1 if path == REPORTS else 0)
        return 403, {"message": f"{path} is forbidden"}

    small.fails = refuse
    for _ in range(2):
        with pytest.raises(TrainingError, match="jobreports"):
            small_client.list_jobs()
    small.fails = lambda method, path: (404, {"message": "not found"}) if path == TRAIN_JOBS else None
    small.report(make(small_client), "Running")
    assert [(job.name, "Running" in repr(job)) for job in small_client.list_jobs()] == [("train", True)]
    with pytest.raises(NotSupportedError):
        small_client.list_jobs(job_kind="TrainJob")


@pytest.mark.parametrize(
    ("objects", "size", "limit"),
    [
        (500, 500 * 3000, 5000),
        (500, 16 << 20, 500),
        (500, 500 * (800 << 10), 20),
        (5000, 16 << 20, 5000),
        (3, 3 * (20 << 20), 1),
        (0, 100, 500),
        (500, 0, 500),
    ],
)
def test_pages_of_lists_have_about_16_megabytes(objects: int, size: int, limit: int) -> None:
    assert _apiserver.page_limit(objects, size) == limit


@pytest.mark.parametrize(
    ("objects", "size", "pages"),
    [
        (500, 3, [(500, 0)]),
        (1200, 3, [(500, 0), (5000, 0)]),
        (6000, 3, [(500, 0), (5000, 0), (5000, 5000)]),
        (1200, 16, [(500, 0), (1024, 500)]),
        (515, 800, [(500, 0), (20, 500)]),
    ],
)
def test_the_first_page_of_a_list_decides_on_the_next(
    monkeypatch: pytest.MonkeyPatch, objects: int, size: int, pages: list[tuple[int, int]]
) -> None:
    """The size of an object is in KiB."""
    asked: list[tuple[int, int]] = []

    async def answer(self: Any, request: Any, deadline: float | None) -> tuple[dict[str, Any], int]:
        assert request.is_list
        limit, since = request.query["limit"], int(request.query["continue"] or 0)
        asked.append((limit, since))
        end = min(since + limit, objects)
        items = [{"metadata": {"name": str(number)}} for number in range(since, end)]
        meta = {"resourceVersion": "7", "continue": str(end) if end < objects else ""}
        return {"metadata": meta, "items": items}, len(items) * size * 1024

    monkeypatch.setattr(_apiserver.Api, "_sized", answer)
    driver = BlockingDriver(Credentials(client.Configuration(host="http://127.0.0.1:1")))
    api = _apiserver.Api(driver, RetryPolicy(), "host")
    items, version = run(api.list(JOB_REPORT, "default"))
    assert [item["metadata"]["name"] for item in items] == [str(number) for number in range(objects)]
    assert asked == pages and version == "7"


def test_asyncio_reads_a_list_as_long_as_the_server_sends() -> None:
    """Other requests end after their time, also while the server sends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n")
        for byte in (b"a", b"b", b"c", b"d", b"e", b"f"):
            writer.write(byte)
            await asyncio.sleep(0.2)
        writer.close()

    async def read() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        driver = AsyncDriver(Credentials(client.Configuration(host=f"http://127.0.0.1:{port}")))
        assert (await driver.request(Request("GET", "/x", is_list=True), 0.6)).body == b"abcdef"
        with pytest.raises(ConnectionLostError):
            await driver.request(Request("GET", "/x"), 0.6)
        with pytest.raises(ConnectionLostError):
            await driver.request(Request("GET", "/x", is_list=True), 0.1)
        await driver.close()
        server.close()

    asyncio.run(read())


def test_garbage_is_collected_again_after_large_answers() -> None:
    text = json.dumps({"items": ["x" * 100] * 20000}).encode()
    assert len(text) > _apiserver.LARGE
    thresholds = gc.get_threshold()
    for collects in (True, False):
        try:
            (gc.enable if collects else gc.disable)()
            with _apiserver.uncollected():
                assert len(_apiserver.decoded(text)["items"]) == 20000 and not gc.get_threshold()[0]
            assert gc.isenabled() == collects and gc.get_threshold() == thresholds and not gc.get_freeze_count()
            with pytest.raises(ValueError, match="Unterminated"):
                _apiserver.decoded(text[:-5])
            assert gc.isenabled() == collects and gc.get_threshold() == thresholds
        finally:
            gc.enable()
    gc.freeze()
    try:
        _apiserver.decoded(text)
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_what_the_program_says_about_garbage_meanwhile_stays() -> None:
    thresholds = gc.get_threshold()
    try:
        with _apiserver.uncollected():
            gc.disable()
        assert not gc.isenabled() and gc.get_threshold() == thresholds
        with _apiserver.uncollected():
            gc.set_threshold(900)
            with _apiserver.uncollected():
                assert not gc.get_threshold()[0]
        assert gc.get_threshold()[0] == 900
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
