"""Reads the runtimes of Kubeflow Trainer, as ``kubectl odh mpijob runtimes`` does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._trainer_runtime import RUNTIMES
from openshift_ai_sdk.training.errors import JobNotFoundError, PermissionDeniedError

GROUP = "mpi.opendatahub.io/"
NODE_LABELS, ALLOW_EGRESS = f"{GROUP}required-node-labels", f"{GROUP}allow-egress"
OF_NAMESPACE, OF_CLUSTER = RUNTIMES


@dataclass(frozen=True)
class Runtime:
    """A runtime of Kubeflow Trainer: image, MPI and limits that an administrator prepared for TrainJobs.

    Attributes:
        name: The runtime's name, for ``MPIJob(runtime=...)``.
        namespace: Its namespace; None for a runtime of the cluster.
        kind: ``TrainingRuntime``, or ``ClusterTrainingRuntime`` for all namespaces.
        implementation: Its MPI: ``OpenMPI``, ``MPICH`` or ``Intel``; None for a runtime without MPI.
        slots: Ranks per worker, unless the job sets it; None without MPI.
        image: The image of the workers; None if it has none.
        min_workers: The minimum number of workers of a job, as the administrator wrote it; None for none.
        max_workers: The maximum number of workers of a job; None for none.
        max_gpus: The maximum number of GPUs of a worker; None for none.
        node_labels: Labels that the nodes must have, as ``key=value``, separated by commas; None for none.
        allow_egress: Destinations that the pods may connect to besides their own job, separated by commas; None for
            none.
        gang_timeout: After how many seconds an attempt to place all pods together ends, unless the job sets it; None
            for the default.
        priority_class: The priority class of the pods; None for the cluster's default.
        manifest: The runtime's object.
    """

    name: str
    namespace: str | None
    kind: str
    implementation: str | None
    slots: int | None
    image: str | None
    min_workers: str | None
    max_workers: str | None
    max_gpus: str | None
    node_labels: str | None
    allow_egress: str | None
    gang_timeout: str | None
    priority_class: str | None
    manifest: Json


async def all_of(cluster: Cluster, namespace: str) -> list[Runtime]:
    """Return the runtimes of a namespace and, if the user may list them, of the cluster, by name."""
    items, _ = await cluster.api.list(OF_NAMESPACE, namespace)
    with suppress(PermissionDeniedError):  # Roles of a namespace need not include what the whole cluster has.
        items += (await cluster.api.list(OF_CLUSTER, None))[0]
    return sorted((read(item) for item in items), key=lambda runtime: (runtime.name, runtime.namespace or ""))


async def get(cluster: Cluster, namespace: str, name: str) -> Runtime:
    """Return a runtime by its name: of the namespace, else of the cluster."""
    found = await cluster.api.find(OF_NAMESPACE, namespace, name) or await cluster.api.find(OF_CLUSTER, None, name)
    if found is None:
        names = [runtime.name for runtime in await all_of(cluster, namespace)]
        raise JobNotFoundError(f"runtime {name!r} does not exist{nearest(name, names)}; list_runtimes() returns all")
    return read(found)


def read(item: Json) -> Runtime:
    """Return the runtime that an object describes."""
    meta, spec = item["metadata"], item.get("spec") or {}
    notes = meta.get("annotations") or {}
    namespace = meta.get("namespace")
    mpi = (spec.get("mlPolicy") or {}).get("mpi")
    image, priority = None, None
    for job in ((spec.get("template") or {}).get("spec") or {}).get("replicatedJobs") or []:
        pod = job["template"]["spec"]["template"]["spec"]
        priority = priority or pod.get("priorityClassName")
        node: Json = next((one for one in pod.get("containers") or [] if one["name"] == "node"), {})
        # The launcher's image is that of the workers, unless there are other workers.
        image = node.get("image") if job["name"] == "node" or image is None else image
    return Runtime(
        name=meta["name"],
        namespace=namespace,
        kind=OF_NAMESPACE.kind if namespace else OF_CLUSTER.kind,
        implementation=None if mpi is None else notes.get(f"{GROUP}mpi-implementation", "OpenMPI"),
        slots=None if mpi is None else mpi.get("numProcPerNode") or 1,
        image=image,
        min_workers=notes.get(f"{GROUP}min-workers"),
        max_workers=notes.get(f"{GROUP}max-workers"),
        max_gpus=notes.get(f"{GROUP}max-gpus-per-worker"),
        node_labels=notes.get(NODE_LABELS),
        allow_egress=notes.get(ALLOW_EGRESS),
        gang_timeout=notes.get(f"{GROUP}schedule-timeout-seconds"),
        priority_class=priority,
        manifest=item,
    )
