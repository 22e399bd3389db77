"""A job as its user wrote it, from the cluster or from the report of a deleted job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import yaml

from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._kinds import ANNOTATION_SUSPEND_IN_QUEUE, TRAIN_JOB, is_train_job
from openshift_ai_sdk.training._manifest import without_empty
from openshift_ai_sdk.training._mask import MASKED
from openshift_ai_sdk.training.errors import Problem

KUEUE = "kueue.x-k8s.io/"
# The annotations that Kueue writes into pod templates. Users write others, such as those for topologies.
ASSIGNED = (KUEUE + "workload", KUEUE + "workload-slice-name")
# A JSON Patch with the requests for RDMA that the operator removed from a job in a queue, because no node offered them.
ANNOTATION_REMOVED_RDMA = "mpi.opendatahub.io/removed-rdma"
# Annotations that the API server, the operator, and suspend have set.
NOT_WRITTEN = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "mpi.opendatahub.io/created-by",
    "mpi.opendatahub.io/suspend-set-by",
    "mpi.opendatahub.io/changed-by",
    "mpi.opendatahub.io/suspend-in-queue-set-by",
    ANNOTATION_REMOVED_RDMA,
    ANNOTATION_SUSPEND_IN_QUEUE,
)
# What is wrong with a secret in the report of a deleted job.
AFTER_MASKING = "is masked in the report of the deleted job; set it again"


def as_written(job: Json) -> Json:
    """Return a job as its user wrote it: without its status, and not suspended."""
    meta = job["metadata"]
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in NOT_WRITTEN}
    kept = {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "labels": meta.get("labels"),
        "annotations": annotations,
    }
    manifest: Json = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": without_empty(kept),
        "spec": deepcopy(job["spec"]),
    }
    restore_rdma(manifest, (meta.get("annotations") or {}).get(ANNOTATION_REMOVED_RDMA))
    holder = manifest["spec"] if is_train_job(manifest) else manifest["spec"].get("runPolicy") or {}
    holder.pop("suspend", None)
    without_queue(manifest["spec"])
    return manifest


def restore_rdma(manifest: Json, removed: str | None) -> None:
    """Add the requests for RDMA again that the operator removed from a job in a queue (ANNOTATION_REMOVED_RDMA)."""
    try:
        requests = json.loads(removed or "[]")
    except ValueError:
        return
    for request in requests if isinstance(requests, list) else ():
        path = str(request.get("path", "")) if isinstance(request, dict) else ""
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        if parts[:1] != ["spec"] or parts[-2:-1] not in (["limits"], ["requests"]):
            continue
        holder: Any = manifest
        for part in parts[:-2]:
            if isinstance(holder, list):
                holder = holder[int(part)] if part.isdecimal() and int(part) < len(holder) else None
            else:
                holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            holder.setdefault(parts[-2], {}).setdefault(parts[-1], request.get("value"))


def written_in(report: Json | None) -> tuple[Json | None, str]:
    """Return the job in the report of a deleted job, in which secrets are masked, or None and why there is none."""
    specification = (report.get("status") or {}).get("specification") or {} if report else {}
    if not report or not specification.get("manifest"):
        why = specification.get("omitted")
        return None, f"its report does not contain its specification{f': {why}' if why else ''}"
    manifest: Json = yaml.safe_load(specification["manifest"])
    # The reference is immutable, and what the report is about.
    ref = report["spec"]["jobRef"]
    manifest |= {"apiVersion": ref["apiVersion"], "kind": ref["kind"]}
    manifest["metadata"] |= {"name": ref["name"], "namespace": report["metadata"]["namespace"]}
    return manifest, ""


def masked_in(value: Any, path: str = "") -> Iterator[Problem]:
    """Yield the values of a manifest that contain a secret that was masked in a report."""
    if isinstance(value, dict):
        variable = value.get("name") if isinstance(value.get("value"), str) else None
        for key, entry in value.items():
            step = f"[{key}]" if "." in key else f".{key}" if path else key
            for problem in masked_in(entry, path + step):
                if key == "value" and variable and problem.field == f"{path}.value":
                    again = f"such as with env={{{variable!r}: ...}}"
                    yield Problem(problem.field, f"the variable {variable} {AFTER_MASKING}, {again}")
                else:
                    yield problem
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            yield from masked_in(entry, f"{path}[{i}]")
    elif isinstance(value, str) and MASKED in value:
        yield Problem(path, f"the value {AFTER_MASKING}")


def without_queue(spec: Json) -> None:
    """Remove what Kueue wrote into a job when it admitted the job, but for node selectors and tolerations."""
    for replica in (spec.get("mpiReplicaSpecs") or {}).values():
        template = replica.get("template") or {}
        metadata = template.get("metadata") or {}
        labels = {k: v for k, v in (metadata.get("labels") or {}).items() if not k.startswith(KUEUE)}
        annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in ASSIGNED}
        template["metadata"] = without_empty({**metadata, "labels": labels, "annotations": annotations})
        if not template["metadata"]:
            del template["metadata"]
        gates = (template.get("spec") or {}).pop("schedulingGates", None) or []
        if own := [gate for gate in gates if not str(gate.get("name", "")).startswith(KUEUE)]:
            template["spec"]["schedulingGates"] = own
    patches = spec.pop("runtimePatches", None) or []
    kept = [patch for patch in patches if not str(patch.get("manager", "")).startswith(KUEUE)]
    for patch in kept:
        patch.pop("time", None)
    if kept:
        spec["runtimePatches"] = kept


def keep_placement(manifest: Json, job: Json, report: Json | None) -> None:
    """Give a job that Kueue has admitted the node selectors and tolerations that it had before, as its report has them.

    Kueue adds those of the nodes of its queue.
    """
    recorded, _ = written_in(report)
    queue = (job["metadata"].get("labels") or {}).get(KUEUE + "queue-name")
    if recorded is None or not queue or is_suspended(job):
        return
    before = recorded["spec"].get("mpiReplicaSpecs") or {}
    for role, replica in (manifest["spec"].get("mpiReplicaSpecs") or {}).items():
        pod, was = (((each or {}).get("template") or {}).get("spec") for each in (replica, before.get(role)))
        if pod is None or was is None:
            continue
        for name in ("nodeSelector", "tolerations"):
            pod.pop(name, None)
            if name in was:
                pod[name] = was[name]


def suspended_in_queue_as(manifest: Json, job: Json) -> Json:
    """Return a manifest that is suspended in its queue if a job is."""
    value = (job["metadata"].get("annotations") or {}).get(ANNOTATION_SUSPEND_IN_QUEUE)
    if value is None:
        return manifest
    meta = manifest["metadata"]
    annotations = {**(meta.get("annotations") or {}), ANNOTATION_SUSPEND_IN_QUEUE: value}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def suspend_path(kind: str) -> str:
    """Return where a kind says that a job is suspended."""
    return "spec.suspend" if kind == TRAIN_JOB.kind else "spec.runPolicy.suspend"


def is_suspended(job: Json) -> bool:
    """Return whether a job's own field says that it is suspended."""
    spec = job["spec"] if job["kind"] == TRAIN_JOB.kind else job["spec"].get("runPolicy") or {}
    return bool(spec.get("suspend"))


def is_suspended_in_queue(job: Json) -> bool:
    """Return whether the user has suspended a job in its queue."""
    return (job["metadata"].get("annotations") or {}).get(ANNOTATION_SUSPEND_IN_QUEUE) == "true"
