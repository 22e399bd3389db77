"""Jobs that have, or had, the same name."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from smallapi import JOBS, PODS, SmallAPI

from openshift_ai_sdk.training import JobNotFoundError, JobTimeoutError


def make(client: Any) -> Any:
    return client.create_job("train", container_image="image", command="train.py")


def described(face: Any, client: Any) -> Any:
    """Return a job that knows its name only."""
    return face.MPIJob("train", image="image", command="train.py", client=getattr(client, "value", client))


def again(client: Any, small: SmallAPI, **status: Any) -> tuple[Any, Any]:
    """Return a job that has failed and is deleted, and the one that has its name now."""
    old = make(client)
    small.report(old, "Failed", message="the old one", **status)
    old.delete()
    return old, make(client)


def test_waiting_by_name_means_the_job_that_exists(face: Any, small_client: Any, small: SmallAPI) -> None:
    _, new = again(small_client, small)
    job = described(face, small_client)
    assert job.get_status().phase is None
    with pytest.raises(JobTimeoutError):
        job.wait_for_completion(timeout=0.3)
    with pytest.raises(JobTimeoutError):
        small_client.wait_for_jobs([job], timeout=0.3)
    threading.Timer(0.3, lambda: small.report(new, "Succeeded")).start()
    assert job.wait_for_completion(timeout=20) == "Succeeded"
    assert [status.phase for status in small_client.wait_for_jobs([job], timeout=20)] == ["Succeeded"]


def test_waiting_by_name_means_the_last_job_that_existed(face: Any, small_client: Any, small: SmallAPI) -> None:
    _, new = again(small_client, small)
    small.report(new, "Succeeded")
    new.delete()
    small.objects = {
        path: {**item, "metadata": {**item["metadata"], "creationTimestamp": created(item)}}
        for path, item in small.objects.items()
    }
    assert described(face, small_client).wait_for_completion(timeout=20) == "Succeeded"


def created(item: Any) -> str:
    return f"2026-01-02T10:00:{int(item['metadata']['resourceVersion']) % 60:02}Z"


def test_a_job_is_explained_by_its_own_report(small_client: Any, small: SmallAPI) -> None:
    finding = {"code": "OutOfMemory", "severity": "Error", "summary": "The old one used too much.", "remedies": []}
    old, new = again(small_client, small, findings=[finding])
    small.report(new, "Running")
    assert "The old one used too much." in str(old.explain())
    assert "The old one used too much." not in str(new.explain())


def test_the_log_of_a_job_is_not_that_of_another(small_client: Any, small: SmallAPI) -> None:
    tail = {"code": "Unknown", "logTail": ["[train-launcher-old] of the old one"]}
    old, new = again(small_client, small, failure=tail)
    small.pod(new, "train-launcher-new", ["of the new one"])
    assert str(old.get_logs()) == "of the old one"
    assert str(new.get_logs()) == "of the new one"


def test_what_is_gone_without_a_report_is_told(small_client: Any, small: SmallAPI) -> None:
    old = make(small_client)
    old.delete()
    make(small_client)
    for call in (old.explain, old.get_logs, old.clone, old.suspend):
        with pytest.raises(
            JobNotFoundError, match=r"was deleted; MPIJob.get\('train'\) returns the job that has its name"
        ):
            call()


def test_another_job_is_not_cancelled(small_client: Any, small: SmallAPI) -> None:
    old, new = again(small_client, small)
    small.pod(new, "train-launcher-new", ["here"], running=True)
    for period in (0, 60):
        old.cancel(grace_period=period)
    assert f"{JOBS}/train" in small.objects and f"{PODS}/train-launcher-new" in small.objects
    new.cancel(grace_period=0)
    assert f"{JOBS}/train" not in small.objects and f"{PODS}/train-launcher-new" not in small.objects
