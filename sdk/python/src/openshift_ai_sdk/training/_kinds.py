"""The kinds of objects that jobs need, where the API server serves them, and labels of jobs."""

from __future__ import annotations

from dataclasses import dataclass

from openshift_ai_sdk.training._driver import Json


@dataclass(frozen=True)
class Resource:
    """A kind of object and where the API server serves it."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str | None, name: str = "") -> str:
        """Return the path of an object, or of the list if there is no name. Without a namespace all are meant."""
        prefix = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{prefix}{scope}/{self.plural}" + (f"/{name}" if name else "")


MPI_JOB = Resource("kubeflow.org/v2beta1", "MPIJob", "mpijobs")
TRAIN_JOB = Resource("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs")
KINDS = {resource.kind: resource for resource in (MPI_JOB, TRAIN_JOB)}
JOB_REPORT = Resource("mpi.opendatahub.io/v1alpha1", "JobReport", "jobreports")
POD = Resource("v1", "Pod", "pods")

LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
ANNOTATION_SUSPEND_IN_QUEUE = "mpi.opendatahub.io/suspend-in-queue"


def is_train_job(manifest: Json) -> bool:
    """Return whether a manifest is a TrainJob's."""
    return bool(manifest["kind"] == TRAIN_JOB.kind)
