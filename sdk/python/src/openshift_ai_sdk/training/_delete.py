"""Deletes and cancels jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._job_ref import JobRef, selector_of
from openshift_ai_sdk.training._kinds import POD
from openshift_ai_sdk.training._many import call_each
from openshift_ai_sdk.training._watch import watch
from openshift_ai_sdk.training.errors import APIError, JobNotFoundError, JobTimeoutError, TrainingError

# The grace period in seconds of a pod that specifies none.
DEFAULT_GRACE_PERIOD = 30
# What the API server answers if the object has another uid.
CONFLICT = 409


async def delete(cluster: Cluster, ref: JobRef) -> None:
    """Delete a job and what it owns. A job with a uid may be gone already."""
    try:
        await cluster.api.delete(ref.resource, ref.namespace, ref.name, ref.uid or None)
    except JobNotFoundError:
        if not ref.uid:
            raise
    except APIError as error:
        # Another job has its name now.
        if not ref.uid or error.code != CONFLICT:
            raise


async def delete_all(cluster: Cluster, refs: Sequence[JobRef]) -> list[TrainingError | None]:
    """Delete jobs, several at a time, and return for each in their order None, or why it was not deleted."""
    places = [(ref.kind, ref.namespace) for ref in refs]
    return await call_each(cluster, places, [partial(delete, ref=ref) for ref in refs])


async def cancel(cluster: Cluster, ref: JobRef, grace_period: float | None = None) -> None:
    """End a job: delete it, with so many seconds for its programs to end after SIGTERM. Its report stays.

    The job is deleted before its pods, so that the operator does not take their end for a failure. Only a grace period
    that is longer than that of a pod is set before: the deletion of the job deletes its pods, and then a grace period
    can only be shortened.
    """
    if grace_period is None:
        await delete(cluster, ref)
        return
    job = await cluster.api.find(ref.resource, ref.namespace, ref.name)
    if ref.uid and (job is None or job["metadata"]["uid"] != ref.uid):
        # The job is gone already, and the pods may be those of another job of its name.
        return
    pods, _ = await cluster.api.list(POD, ref.namespace, selector_of(ref))
    if all(grace_period <= pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_PERIOD) for pod in pods):
        await delete(cluster, ref)
        await _delete_pods(cluster, pods, grace_period)
    else:
        await _delete_pods(cluster, pods, grace_period)
        await delete(cluster, ref)


async def _delete_pods(cluster: Cluster, pods: Sequence[Json], grace_period: float) -> None:
    """Delete pods with a grace period. Those that are gone are skipped."""
    for pod in pods:
        meta = pod["metadata"]
        try:
            await cluster.api.delete(POD, meta["namespace"], meta["name"], meta["uid"], round(grace_period))
        except JobNotFoundError:
            continue


async def await_deletion(cluster: Cluster, ref: JobRef, timeout: float | None = None) -> None:
    """Wait until a job is gone."""
    deadline = None if timeout is None else cluster.api.driver.monotonic() + timeout
    there = False
    async with aclosing(watch(cluster.api, ref.resource, ref.namespace, "", deadline, ref.name)) as changes:
        async for change in changes:
            if change.type == "SYNCED":
                if not there:
                    return
                continue
            meta = change.object["metadata"]
            if meta["name"] == ref.name and (not ref.uid or meta["uid"] == ref.uid):
                there = change.type == "CHANGED"
                if not there:
                    return
    raise JobTimeoutError(f"{ref} was not deleted within {timeout:g} s", await cluster.status(ref))
