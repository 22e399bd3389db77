"""Models of RuntimeTest mpi.opendatahub.io/v1alpha1, from config/crd/mpi.opendatahub.io_runtimetests.yaml.

Run `make sdk-generate` to update this file; do not edit it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from openshift_ai_sdk.training._generated._base import OpenEnum, Received

__all__ = [
    "Change",
    "Check",
    "Claim",
    "Communication",
    "JobRef",
    "Kind",
    "Name",
    "Remedy",
    "ResourcesPerNode",
    "Result",
    "RuntimeRef",
    "RuntimeTest",
    "RuntimeTestPhase",
    "RuntimeTestSpec",
    "RuntimeTestStatus",
]


class Claim(Received):
    """ResourceClaim references one entry in PodSpec.ResourceClaims."""

    name: str
    """Name must match the name of one entry in pod.spec.resourceClaims of the Pod where this field is used.

    It makes that resource available inside a container.
    """
    request: str | None = None
    """Request is the name chosen for a request in the referenced claim.

    If empty, everything from the claim is made available, otherwise only the result of this request.
    """


class ResourcesPerNode(Received):
    """ResourcesPerNode replaces the resources of the runtime's pods, as in a TrainJob, for example to test a runtime
    for GPUs without GPUs."""

    claims: list[Claim] = Field(default_factory=list)
    """Claims lists the names of resources, defined in spec.resourceClaims, that are used by this container.

    This field depends on the DynamicResourceAllocation feature gate. This field is immutable. It can only be set for
    containers.
    """
    limits: dict[str, int | str] | None = None
    """Limits describes the maximum amount of compute resources allowed.

    More info: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
    """
    requests: dict[str, int | str] | None = None
    """Requests describes the minimum amount of compute resources required.

    If Requests is omitted for a container, it defaults to Limits if that is explicitly specified, otherwise to an
    implementation-defined value. Requests cannot exceed Limits. More info:
    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
    """


class Kind(OpenEnum):
    """Kind of the runtime.

    A TrainingRuntime must be in the namespace of the test.
    """

    CLUSTER_TRAINING_RUNTIME = "ClusterTrainingRuntime"
    TRAINING_RUNTIME = "TrainingRuntime"


class RuntimeRef(Received):
    """RuntimeRef is the runtime to test."""

    kind: Kind | None = None
    """Kind of the runtime.

    A TrainingRuntime must be in the namespace of the test.
    """
    name: str
    """Name of the runtime."""


class RuntimeTestSpec(Received):
    """Spec defines what to test.

    It is immutable.
    """

    image: str | None = None
    """Image replaces the runtime's image in all pods, as in a TrainJob."""
    resources_per_node: ResourcesPerNode | None = Field(default=None, alias="resourcesPerNode")
    """ResourcesPerNode replaces the resources of the runtime's pods, as in a TrainJob, for example to test a runtime
    for GPUs without GPUs."""
    runtime_ref: RuntimeRef = Field(alias="runtimeRef")
    """RuntimeRef is the runtime to test."""
    timeout_seconds: int | None = Field(default=None, alias="timeoutSeconds")
    """TimeoutSeconds is how long the test may run before it fails."""
    ttl_seconds_after_finished: int | None = Field(default=None, alias="ttlSecondsAfterFinished")
    """TtlSecondsAfterFinished is how long the test is kept after it finishes.

    If unset, it is kept until it is deleted. Its TrainJob is always deleted immediately.
    """


class Name(OpenEnum):
    """Name is ImagePull (all pods pulled the image), Keys (the pods accepted each other's keys), Connection (the
    launcher connected to all workers), ProcessStart (MPI started every rank) or RanksDistinct (each rank ran in a
    different pod).

    The last is Communication (ranks exchanged MPI messages).
    """

    IMAGE_PULL = "ImagePull"
    KEYS = "Keys"
    CONNECTION = "Connection"
    PROCESS_START = "ProcessStart"
    RANKS_DISTINCT = "RanksDistinct"
    COMMUNICATION = "Communication"


class Change(Received):
    """FieldChange sets a field of a job."""

    field: str
    """Field is the path of the field, with the index of a list entry or a name with dots in brackets, such as
    spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]; or env.NAME for a variable of every rank."""
    value: str
    """Value is the new value: that of a path in YAML, that of a variable as it is, or empty to remove it."""


class Remedy(Received):
    """Remedy is a suggested fix."""

    action: str | None = None
    """Action is a command to run, or a field of the job and its new value, if there is one."""
    changes: list[Change] = Field(default_factory=list)
    """Changes are fields of the job to set in the copy, in this order."""
    rerun: bool | None = None
    """Rerun is whether clients can apply the fix: by a copy of the job, with the changes below if there are any."""
    text: str
    """Text describes the fix to users."""


class Result(OpenEnum):
    """Result is Pending, Pass, Fail, Skipped if the image lacks what the check needs, or Unknown if the test ended
    before the check had a result."""

    PENDING = "Pending"
    PASS_ = "Pass"
    FAIL = "Fail"
    SKIPPED = "Skipped"
    UNKNOWN = "Unknown"


class Check(Received):
    """RuntimeCheck is a check and its result."""

    finding: str | None = None
    """Finding is the code of the problem, such as ImagePullFailed, as in JobReports."""
    message: str | None = None
    """Message explains the result to users."""
    milliseconds: int | None = None
    """Milliseconds is how long the step took, if it was measured."""
    name: Name
    """Name is ImagePull (all pods pulled the image), Keys (the pods accepted each other's keys), Connection (the
    launcher connected to all workers), ProcessStart (MPI started every rank) or RanksDistinct (each rank ran in a
    different pod).

    The last is Communication (ranks exchanged MPI messages).
    """
    remedies: list[Remedy] = Field(default_factory=list)
    """Remedies are suggested fixes, the most likely first."""
    result: Result
    """Result is Pending, Pass, Fail, Skipped if the image lacks what the check needs, or Unknown if the test ended
    before the check had a result."""


class Communication(Received):
    """Communication is what the ranks measured.

    It is unset if no MPI library of the image could be loaded; the check Communication has the reason.
    """

    bytes_per_second: int = Field(alias="bytesPerSecond")
    """BytesPerSecond is the bandwidth of messages of 4 MiB."""
    latency_nanoseconds: int = Field(alias="latencyNanoseconds")
    """LatencyNanoseconds is half of the round trip of a message of 8 bytes."""
    method: str
    """Method is the MPI library of the image with which the ranks exchanged the messages, such as Open MPI 5.0.7."""


class JobRef(Received):
    """JobRef is the TrainJob of the test.

    It is deleted when the test finishes; its JobReport is kept and has more details.
    """

    api_version: str = Field(alias="apiVersion")
    """ApiVersion of the job, such as kubeflow.org/v2beta1."""
    kind: str
    """Kind of the job: MPIJob or TrainJob."""
    name: str
    """Name of the job.

    It is in the namespace of the report.
    """
    uid: str
    """Uid of the job."""


class RuntimeTestPhase(OpenEnum):
    """Phase is Pending (not started), Running, Passed (no check failed) or Failed."""

    PENDING = "Pending"
    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"


class RuntimeTestStatus(Received):
    """Status is the result of the test."""

    checks: list[Check] = Field(default_factory=list)
    """Checks are the results of the startup steps of an MPI job, in order."""
    communication: Communication | None = None
    """Communication is what the ranks measured.

    It is unset if no MPI library of the image could be loaded; the check Communication has the reason.
    """
    completion_time: datetime | None = Field(default=None, alias="completionTime")
    """CompletionTime is when the test finished."""
    job_ref: JobRef | None = Field(default=None, alias="jobRef")
    """JobRef is the TrainJob of the test.

    It is deleted when the test finishes; its JobReport is kept and has more details.
    """
    message: str | None = None
    """Message summarizes the result for users."""
    phase: RuntimeTestPhase | None = None
    """Phase is Pending (not started), Running, Passed (no check failed) or Failed."""
    start_time: datetime | None = Field(default=None, alias="startTime")
    """StartTime is when the test started."""


class RuntimeTest(Received):
    """RuntimeTest tests an MPI runtime of Kubeflow Trainer.

    The operator runs a TrainJob of 3 pods that prints where its ranks run and exchanges messages between them, reports
    the result of each step, and deletes the TrainJob. A test runs once; create another one to repeat it.
    """

    api_version: str | None = Field(default=None, alias="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object.

    Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents.

    Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: dict[str, Any] | None = None
    spec: RuntimeTestSpec
    """Spec defines what to test.

    It is immutable.
    """
    status: RuntimeTestStatus | None = None
    """Status is the result of the test."""
