"""Copies of jobs, and jobs that are created again."""

from __future__ import annotations

from typing import Any

from smallapi import JOBS, SmallAPI

HELD = "mpi.opendatahub.io/suspend-in-queue"


def held(client: Any, small: SmallAPI) -> Any:
    """Return a job that its user has suspended in its queue."""
    job = client.create_job("train", container_image="image", command="train.py", queue="team")
    manifest = job.manifest
    manifest["spec"]["runPolicy"]["suspend"] = True
    small.put(JOBS, {**manifest, "metadata": {**manifest["metadata"], "annotations": {HELD: "true", "note": "kept"}}})
    return client.get_job("train")


def test_a_clone_is_not_suspended_in_its_queue(small_client: Any, small: SmallAPI) -> None:
    clone = held(small_client, small).clone()
    assert clone.manifest["metadata"]["annotations"] == {"note": "kept"}
    assert "suspend" not in clone.manifest["spec"]["runPolicy"]


def test_a_job_that_is_created_again_stays_suspended(small_client: Any, small: SmallAPI) -> None:
    job = held(small_client, small)
    job.delete()
    again = job.create()
    assert again.manifest["metadata"]["annotations"] == {HELD: "true", "note": "kept"}
    assert again.manifest["spec"]["runPolicy"]["suspend"] is True
