"""Creates jobs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import partial

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._command import LaunchOptions
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._interrupt import detachable
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._kinds import KINDS, TRAIN_JOB, Resource
from openshift_ai_sdk.training._many import call_each
from openshift_ai_sdk.training._notify import Observer
from openshift_ai_sdk.training._trainer_runtime import with_runtime
from openshift_ai_sdk.training._wait import wait
from openshift_ai_sdk.training.errors import PermissionDeniedError, TrainingError

NAMESPACE = Resource("v1", "Namespace", "namespaces")
# For how many seconds the labels of a namespace are cached.
NAMESPACE_LIFETIME = 30.0


async def create(
    cluster: Cluster,
    manifest: Json,
    dry_run: bool = False,
    after: Sequence[JobRef] = (),
    launch: LaunchOptions | None = None,
) -> Json:
    """Create a job, once others have succeeded, and return it as the API server has it."""
    kind, namespace = manifest["kind"], manifest["metadata"]["namespace"]
    if after:
        name = f"{kind.lower()}/{manifest['metadata']['name']}"
        with detachable(f"{name} is not created", "create it again with create(after=...)"):
            for ref in after:
                await wait(cluster, ref, observer=Observer())
    if kind == TRAIN_JOB.kind:
        manifest = await with_runtime(cluster, manifest, launch)
    elif await is_restricted(cluster, namespace):
        manifest = restrict(manifest)
    return await cluster.api.create(KINDS[kind], namespace, manifest, dry_run)


async def create_all(cluster: Cluster, jobs: Sequence[tuple[Json, LaunchOptions | None]]) -> list[Json | TrainingError]:
    """Create jobs, several at a time, and return for each in their order the job, or why it was not created."""
    places = [(manifest["kind"], manifest["metadata"]["namespace"]) for manifest, _ in jobs]
    return await call_each(
        cluster, places, [partial(create, manifest=manifest, launch=launch) for manifest, launch in jobs]
    )


async def is_restricted(cluster: Cluster, namespace: str) -> bool:
    """Return whether a namespace takes only pods that Pod Security calls restricted."""
    known, until = cluster.restricted.get(namespace, (False, 0.0))
    if cluster.api.driver.monotonic() < until:
        return known
    try:
        found = await cluster.api.find(NAMESPACE, None, namespace)
    except PermissionDeniedError:
        return False
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    restricted = bool(labels.get("pod-security.kubernetes.io/enforce") == "restricted")
    cluster.restricted[namespace] = restricted, cluster.api.driver.monotonic() + NAMESPACE_LIFETIME
    return restricted


def restrict(manifest: Json) -> Json:
    """Return an MPIJob that a namespace for restricted pods takes."""
    manifest = deepcopy(manifest)
    for role in (manifest["spec"].get("mpiReplicaSpecs") or {}).values():
        for container in role["template"]["spec"]["containers"]:
            container.setdefault("securityContext", {}).setdefault("runAsNonRoot", True)
    return manifest
