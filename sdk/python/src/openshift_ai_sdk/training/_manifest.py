"""From the options of a job to its manifest: the same one that ``kubectl odh mpijob create`` writes."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

from openshift_ai_sdk.training._command import flags_of, launched, words_of
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import parse_duration
from openshift_ai_sdk.training._job_spec import JobSpec
from openshift_ai_sdk.training._kinds import ANNOTATION_SUSPEND_IN_QUEUE, LABEL_QUEUE, MPI_JOB, TRAIN_JOB
from openshift_ai_sdk.training._pods import OUTPUT_DIR, PREFER, added_volumes, toleration_of, with_unique_mounts
from openshift_ai_sdk.training._resources import as_resources, resource_lists
from openshift_ai_sdk.training._trainer_runtime import CONTAINER, runtime_patch
from openshift_ai_sdk.training.errors import InvalidJobError

LABEL_PRIORITY = "kueue.x-k8s.io/priority-class"
# The variable with the URL of MLflow.
MLFLOW = "MLFLOW_TRACKING_URI"
ANNOTATION_CONNECTIONS = "opendatahub.io/connections"
ANNOTATION_MAX_RESTARTS = "mpi.opendatahub.io/max-restarts"
ANNOTATION_PRIORITY_CLASS = "mpi.opendatahub.io/priority-class"
ANNOTATION_SCHEDULE_TIMEOUT = "mpi.opendatahub.io/schedule-timeout-seconds"
ANNOTATION_TTL = "mpi.opendatahub.io/ttl-seconds-after-finished"
ANNOTATION_RDMA = "mpi.opendatahub.io/rdma"
ANNOTATION_PROFILE = "mpi.opendatahub.io/profile"
ANNOTATION_WAIT_FOR_QUOTA = "mpi.opendatahub.io/wait-for-quota"
ANNOTATION_REQUIRED_TOPOLOGY = "mpi.opendatahub.io/required-topology"
ANNOTATION_PREFERRED_TOPOLOGY = "mpi.opendatahub.io/preferred-topology"


def manifest_of(spec: JobSpec, namespace: str | None) -> Json:
    """Return the job's object.

    Raises:
        InvalidJobError: With all problems at once.
    """
    problems = spec.problems_in(namespace)
    if problems:
        raise InvalidJobError(problems)
    return train_job(spec, namespace) if spec.runtime else mpi_job(spec, namespace)


def environment(spec: JobSpec) -> list[Json]:
    """Return the variables of every rank."""
    env = dict(spec.env)
    if spec.mlflow_tracking_uri:
        env.setdefault(MLFLOW, spec.mlflow_tracking_uri)
    if spec.output_dir:
        env.setdefault(OUTPUT_DIR, spec.output_dir.partition(":")[2])
    return [{"name": name, "value": value} for name, value in env.items()]


def metadata(spec: JobSpec, namespace: str | None) -> Json:
    """Return the name, labels and annotations."""
    labels, annotations = dict(spec.labels), dict(spec.annotations)
    if spec.queue:
        labels[LABEL_QUEUE] = spec.queue
    if spec.runtime and spec.priority and spec.queue:
        labels[LABEL_PRIORITY] = spec.priority
    elif spec.runtime and spec.priority:
        annotations[ANNOTATION_PRIORITY_CLASS] = spec.priority
    if spec.connections:
        annotations[ANNOTATION_CONNECTIONS] = ",".join(spec.connections)
    if spec.rdma is not None:
        annotations[ANNOTATION_RDMA] = spec.rdma
    if spec.profile:
        annotations[ANNOTATION_PROFILE] = "true"
    if spec.suspend:
        # The field suspend is not enough in a queue: Kueue resets it. It also adds the label of a default queue.
        annotations[ANNOTATION_SUSPEND_IN_QUEUE] = "true"
    if spec.wait_for_quota:
        annotations[ANNOTATION_WAIT_FOR_QUOTA] = "true"
    if spec.topology:
        preferred = spec.topology.startswith(PREFER)
        key = ANNOTATION_PREFERRED_TOPOLOGY if preferred else ANNOTATION_REQUIRED_TOPOLOGY
        annotations[key] = spec.topology.removeprefix(PREFER)
    if spec.runtime and spec.retries is not None:
        annotations[ANNOTATION_MAX_RESTARTS] = str(spec.retries)
    if spec.runtime and spec.gang_timeout is not None:
        annotations[ANNOTATION_SCHEDULE_TIMEOUT] = str(math.ceil(parse_duration(spec.gang_timeout)))
    if spec.runtime and spec.ttl is not None:
        annotations[ANNOTATION_TTL] = str(math.ceil(parse_duration(spec.ttl)))
    return {"name": spec.name, "namespace": namespace, "labels": labels, "annotations": annotations}


def mpi_job(spec: JobSpec, namespace: str | None) -> Json:
    """Return an MPIJob."""
    command = launched(
        words_of(spec.command or ""), spec.slots * spec.workers, spec.mpi_implementation, flags_of(spec.mpi_flags)
    )
    volumes = volumes_of(spec)
    added = added_volumes(spec.shm, spec.output_dir, spec.name, [volume["name"] for volume in volumes])
    volumes += [volume for volume, _ in added]
    container: Json = {
        "image": spec.image,
        "env": environment(spec),
        "workingDir": spec.workdir,
        "volumeMounts": [*(dict(mount) for mount in spec.volume_mounts), *(mount for _, mount in added)],
        "securityContext": security_context(spec),
    }
    worker: Json = {**container, "name": "worker", "resources": resource_lists(spec.sizes())}
    launcher: Json = {**container, "name": "launcher", "command": command, "resources": launcher_resources(spec)}
    pod: Json = {"priorityClassName": spec.priority, **pod_fields(spec)}
    policy: Json = {"cleanPodPolicy": "Running", "backoffLimit": spec.retries or 0}
    if spec.deadline is not None:
        policy["activeDeadlineSeconds"] = math.ceil(parse_duration(spec.deadline))
    if spec.ttl is not None:
        policy["ttlSecondsAfterFinished"] = math.ceil(parse_duration(spec.ttl))
    if spec.gang_timeout is not None:
        timeout = math.ceil(parse_duration(spec.gang_timeout))
        policy["schedulingPolicy"] = {"scheduleTimeoutSeconds": timeout}
    if spec.suspend:
        policy["suspend"] = True
    manifest: Json = without_empty(
        {
            "apiVersion": MPI_JOB.api_version,
            "kind": MPI_JOB.kind,
            "metadata": metadata(spec, namespace),
            "spec": {
                "slotsPerWorker": spec.slots,
                "mpiImplementation": spec.implementation() if spec.mpi_implementation else None,
                "runPolicy": policy,
                "mpiReplicaSpecs": {
                    "Launcher": {
                        # A launcher that is started again in its pod has its log written over.
                        "restartPolicy": "Never",
                        "template": {"spec": {**pod, "containers": [launcher]}},
                    },
                    "Worker": {
                        "replicas": spec.workers,
                        # Without it, a retry would lack the workers that failed.
                        "restartPolicy": "OnFailure" if spec.retries else None,
                        "template": {"spec": {**pod, "containers": [worker]}},
                    },
                },
            },
        }
    )
    # An empty object is meaningful here: emptyDir.
    for role in manifest["spec"]["mpiReplicaSpecs"].values() if volumes else ():
        role["template"]["spec"]["volumes"] = deepcopy(volumes)
    return manifest


def pod_fields(spec: JobSpec) -> Json:
    """Return the fields of all pods besides their containers and volumes."""
    fields: Json = {
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [toleration_of(taint) for taint in spec.tolerations],
        "imagePullSecrets": [{"name": name} for name in spec.image_pull_secrets],
        "serviceAccountName": spec.service_account,
    }
    if spec.grace_period is not None:
        fields["terminationGracePeriodSeconds"] = math.ceil(parse_duration(spec.grace_period))
    return fields


def security_context(spec: JobSpec) -> Json:
    """Return the security context of pods that need no rights: with the operator's agent none does."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True if spec.run_as_user else None,
        "runAsUser": spec.run_as_user,
    }


def launcher_resources(spec: JobSpec) -> Json:
    """Return what the launcher requests, which runs no ranks."""
    if spec.launcher_resources is not None:
        return resource_lists(as_resources(spec.launcher_resources))
    return {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def volumes_of(spec: JobSpec) -> list[Json]:
    """Return the volumes; a mount of a name that no volume has means the PersistentVolumeClaim of that name."""
    volumes = [dict(volume) for volume in spec.volumes]
    named = {volume["name"] for volume in volumes}
    for name in dict.fromkeys(str(mount["name"]) for mount in spec.volume_mounts):
        if name not in named:
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": name}})
    return volumes


def train_job(spec: JobSpec, namespace: str | None) -> Json:
    """Return a TrainJob."""
    fields: Json = {
        "runtimeRef": {"name": spec.runtime},
        "trainer": {
            "numNodes": spec.workers,
            "image": spec.image,
            "command": words_of(spec.command or ""),
            "env": environment(spec),
            "numProcPerNode": spec.slots_per_worker,
            "resourcesPerNode": resource_lists(spec.sizes()),
        },
    }
    if spec.deadline is not None:
        fields["activeDeadlineSeconds"] = math.ceil(parse_duration(spec.deadline))
    if spec.suspend:
        fields["suspend"] = True
    manifest: Json = without_empty(
        {
            "apiVersion": TRAIN_JOB.api_version,
            "kind": TRAIN_JOB.kind,
            "metadata": metadata(spec, namespace),
            "spec": fields,
        }
    )
    if patch := pod_patch(spec):
        manifest["spec"]["runtimePatches"] = [runtime_patch(patch, ("node", "launcher"))]
    return manifest


def pod_patch(spec: JobSpec) -> Json:
    """Return what the job changes in the pods of its runtime; empty for nothing."""
    fields: Json = without_empty(pod_fields(spec))
    named = volumes_of(spec)
    added = added_volumes(spec.shm, spec.output_dir, spec.name, [volume["name"] for volume in named])
    volumes, mounts = with_unique_mounts(
        [*named, *(volume for volume, _ in added)],
        [*(dict(mount) for mount in spec.volume_mounts), *(mount for _, mount in added)],
    )
    if volumes:
        fields["volumes"] = volumes
    container: Json = {"name": CONTAINER}
    if mounts:
        container["volumeMounts"] = mounts
    if spec.run_as_user:
        container["securityContext"] = {"runAsUser": spec.run_as_user, "runAsNonRoot": True}
    if len(container) > 1:
        fields["containers"] = [container]
    return {"spec": fields} if fields else {}


def without_empty(value: Any) -> Any:
    """Return JSON without nulls, empty objects and empty lists."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {} and item != []}
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value
