"""Suspends and resumes jobs, also in queues."""

from __future__ import annotations

from openshift_ai_sdk.training import _changes
from openshift_ai_sdk.training._cluster import Cluster, replaced
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._job_ref import JobRef, is_finished
from openshift_ai_sdk.training._kinds import ANNOTATION_SUSPEND_IN_QUEUE, LABEL_QUEUE, TRAIN_JOB, Resource
from openshift_ai_sdk.training._written import is_suspended, is_suspended_in_queue
from openshift_ai_sdk.training.errors import APIError, NotSupportedError, PermissionDeniedError, TrainingError

WORKLOAD = Resource("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"
ANNOTATION_TIMEOUTS = "mpi.opendatahub.io/gang-timeouts"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


async def set_suspended(cluster: Cluster, ref: JobRef, to: bool) -> None:
    """Suspend or resume a job.

    In a queue the job gets an annotation, because Kueue resumes a job that is only suspended: the operator deactivates
    the Workload, which users may not change. If the Workload is unknown, the field is set, too.
    """
    found = await cluster.api.get(ref.resource, ref.namespace, ref.name)
    if ref.uid and found["metadata"]["uid"] != ref.uid:
        raise replaced(ref)
    if is_finished(found):
        done, instead = ("suspended", "there is nothing to do") if to else ("resumed", "run it again with clone()")
        raise TrainingError(f"{ref} is finished and cannot be {done}: {instead}")
    uid = found["metadata"]["uid"]
    queued = bool((found["metadata"].get("labels") or {}).get(LABEL_QUEUE))
    if queued:
        workload = await workload_of(cluster, ref.namespace, uid)
        if workload is not None:
            await suspend_in_queue(cluster, ref, found, workload, to)
            return
    held = is_suspended_in_queue(found)
    changes_hold = not held and queued and not is_for_multikueue(found) if to else held
    if is_suspended(found) != to or changes_hold:
        change: Json = {"metadata": {"uid": uid}, **_changes.suspension(ref.kind, to)}
        if changes_hold:
            change["metadata"]["annotations"] = {ANNOTATION_SUSPEND_IN_QUEUE: "true" if to else None}
        await cluster.api.patch(ref.resource, ref.namespace, ref.name, change)


async def suspend_in_queue(cluster: Cluster, ref: JobRef, job: Json, workload: Json, to: bool) -> None:
    """Suspend or resume a job in a queue: by an annotation, or by its Workload where the operator does not act."""
    held = is_suspended_in_queue(job)
    if is_for_multikueue(job) or (not to and not held):
        # The operator leaves the job to another cluster, or somebody has deactivated the Workload itself.
        await set_active(cluster, ref.namespace, job["metadata"]["uid"], workload, not to)
    elif held != to and (not to or workload["spec"].get("active", True) or rests(workload)):
        annotations = {ANNOTATION_SUSPEND_IN_QUEUE: "true" if to else None}
        change = {"metadata": {"uid": job["metadata"]["uid"], "annotations": annotations}}
        await cluster.api.patch(ref.resource, ref.namespace, ref.name, change)


def is_for_multikueue(job: Json) -> bool:
    """Return whether Kueue sends a job to another cluster: the operator of this one does nothing for it."""
    spec = job["spec"] if job["kind"] == TRAIN_JOB.kind else job["spec"].get("runPolicy") or {}
    return bool(spec.get("managedBy") == MULTIKUEUE)


async def workload_of(cluster: Cluster, namespace: str, uid: str) -> Json | None:
    """Return the Workload of a job; None if there is none, no Kueue, or if the user may not read it."""
    try:
        items, _ = await cluster.api.list(WORKLOAD, namespace, f"{LABEL_JOB_UID}={uid}")
    except (NotSupportedError, PermissionDeniedError):
        return None
    owned = (item for item in items if any(owner["uid"] == uid for owner in item["metadata"]["ownerReferences"]))
    return next(owned, None)


async def set_active(cluster: Cluster, namespace: str, uid: str, workload: Json | None, active: bool) -> None:
    """Write whether a Workload is active; one that has changed meanwhile is read again."""
    for pause, _ in zip(cluster.api.retry.pauses(), range(6), strict=False):
        if workload is None:
            raise TrainingError("the job's Workload is gone: try again")
        if workload["spec"].get("active", True) == active:
            return
        meta = workload["metadata"]
        change: Json = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "spec": {"active": active},
        }
        count, rests, _ = (meta.get("annotations") or {}).get(ANNOTATION_TIMEOUTS, "").partition(" ")
        if rests:
            # The operator must not activate it again; how often it did so is kept.
            change["metadata"]["annotations"] = {ANNOTATION_TIMEOUTS: count}
        try:
            await cluster.api.patch(WORKLOAD, namespace, meta["name"], change)
            return
        except APIError as error:
            if error.code != 409:
                raise
        await cluster.api.driver.sleep(pause)
        workload = await workload_of(cluster, namespace, uid)
    raise TrainingError("the job's Workload keeps changing: try again")


def rests(workload: Json) -> bool:
    """Return whether the operator has deactivated a Workload, and will activate it again by itself."""
    return " " in (workload["metadata"].get("annotations") or {}).get(ANNOTATION_TIMEOUTS, "")
