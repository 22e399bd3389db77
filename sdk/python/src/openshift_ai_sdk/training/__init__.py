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

from typing import TYPE_CHECKING

from openshift_ai_sdk.training._curves import TrainingCurve
from openshift_ai_sdk.training._explain import Explanation
from openshift_ai_sdk.training._generated.runtimetest import Check as RuntimeCheck
from openshift_ai_sdk.training._plot import Plot
from openshift_ai_sdk.training._profile import Profile, ProfileCall
from openshift_ai_sdk.training._report import report
from openshift_ai_sdk.training._retry import RetryPolicy
from openshift_ai_sdk.training._runtime_tests import RuntimeTest
from openshift_ai_sdk.training._runtimes import Runtime
from openshift_ai_sdk.training._templates import Template
from openshift_ai_sdk.training._usage_history import UsageHistory, UsageSeries
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
    "Profile",
    "ProfileCall",
    "Remedy",
    "ResourceRequirements",
    "RetryPolicy",
    "Runtime",
    "RuntimeCheck",
    "RuntimeTest",
    "Severity",
    "TLSError",
    "Template",
    "TrainingClient",
    "TrainingCurve",
    "TrainingError",
    "TrainingHistory",
    "TrainingPoint",
    "UsageHistory",
    "UsageSeries",
    "report",
    "train",
]

if TYPE_CHECKING:
    __version__: str
else:
    # Type checkers would take it for the definition of any name.
    def __getattr__(name: str) -> str:
        if name == "__version__":
            import openshift_ai_sdk

            return openshift_ai_sdk.__version__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
