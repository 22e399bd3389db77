"""Run MPI jobs on OpenShift AI, follow them, and learn why they fail and what to do.

Example:
    >>> from openshift_ai_sdk.training import MPIJob, MPIJobFailed, ResourceRequirements
    >>> job = MPIJob(
    ...     "train",
    ...     workers=4,
    ...     image="quay.io/me/train",
    ...     command="python train.py",
    ...     resources=ResourceRequirements(cpu=8, memory="64Gi", gpu=1),
    ... )
    >>> job.create()
    >>> try:
    ...     job.wait_for_completion(timeout="4h")
    ... except MPIJobFailed as failure:
    ...     print(failure)
"""

from openshift_ai_sdk.training._api import RetryPolicy
from openshift_ai_sdk.training._explain import Explanation
from openshift_ai_sdk.training._plot import Plot
from openshift_ai_sdk.training._templates import Template
from openshift_ai_sdk.training.client import JobList, MPIJob, TrainingClient, train
from openshift_ai_sdk.training.errors import (
    APIError,
    ClusterUnreachableError,
    InvalidJobError,
    JobBlockedError,
    JobExistsError,
    JobNotFoundError,
    JobRefusedError,
    JobTimeoutError,
    MPIJobFailed,
    NamespaceNotFoundError,
    NotLoggedInError,
    NotSupportedError,
    PermissionDeniedError,
    Problem,
    TLSError,
    TrainingError,
)
from openshift_ai_sdk.training.models import (
    Event,
    Finding,
    JobStatus,
    LogLine,
    Logs,
    Phase,
    PodStatus,
    PodUsage,
    Remedy,
    ResourceRequirements,
    Severity,
    TrainingHistory,
    TrainingPoint,
)

__all__ = [
    "APIError",
    "ClusterUnreachableError",
    "Event",
    "Explanation",
    "Finding",
    "InvalidJobError",
    "JobBlockedError",
    "JobExistsError",
    "JobList",
    "JobNotFoundError",
    "JobRefusedError",
    "JobStatus",
    "JobTimeoutError",
    "LogLine",
    "Logs",
    "MPIJob",
    "MPIJobFailed",
    "NamespaceNotFoundError",
    "NotLoggedInError",
    "NotSupportedError",
    "PermissionDeniedError",
    "Phase",
    "Plot",
    "PodStatus",
    "PodUsage",
    "Problem",
    "Remedy",
    "ResourceRequirements",
    "RetryPolicy",
    "Severity",
    "TLSError",
    "Template",
    "TrainingClient",
    "TrainingError",
    "TrainingHistory",
    "TrainingPoint",
    "train",
]
