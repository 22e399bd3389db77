"""What the pods of a job use at the moment, by the cluster's metrics server."""

from __future__ import annotations

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._job_ref import JobRef, selector_of
from openshift_ai_sdk.training._kinds import POD, Resource
from openshift_ai_sdk.training._quantity import number
from openshift_ai_sdk.training.errors import APIError, ClusterUnreachableError, NotSupportedError
from openshift_ai_sdk.training.models import PodUsage

POD_METRICS = Resource("metrics.k8s.io/v1beta1", "PodMetrics", "pods")
# How many seconds a metrics server that does not answer is asked again.
PATIENCE = 4.0


async def usage(cluster: Cluster, ref: JobRef) -> list[PodUsage]:
    """Return what the running pods of a job use, by their names.

    Raises:
        NotSupportedError: The cluster has no metrics server, or it does not answer.
    """
    pods, _ = await cluster.api.list(POD, ref.namespace, selector_of(ref))
    deadline = cluster.api.driver.monotonic() + PATIENCE
    try:
        metrics, _ = await cluster.api.list(POD_METRICS, ref.namespace, selector_of(ref), deadline)
    except NotSupportedError as error:
        raise NotSupportedError(
            "the cluster has no metrics server (metrics.k8s.io); ask an administrator of the cluster to install one"
        ) from error
    except (APIError, ClusterUnreachableError) as error:
        # The API server has just answered; it passes this request on.
        if isinstance(error, APIError) and error.code < 500:
            raise
        raise NotSupportedError(
            f"the cluster's metrics server (metrics.k8s.io) does not answer ({error}); try again later, or ask an "
            "administrator of the cluster"
        ) from error
    used = {item["metadata"]["name"]: item["containers"] for item in metrics}
    return [
        PodUsage(
            name,
            cpu=total([container["usage"] for container in used[name]], "cpu"),
            cpu_requested=total(requests_of(pod), "cpu"),
            memory=total([container["usage"] for container in used[name]], "memory"),
            memory_requested=total(requests_of(pod), "memory"),
        )
        for name, pod in sorted((pod["metadata"]["name"], pod) for pod in pods)
        if name in used
    ]


def requests_of(pod: Json) -> list[Json]:
    """Return what the containers of a pod request."""
    return [(container.get("resources") or {}).get("requests") or {} for container in pod["spec"]["containers"]]


def total(lists: list[Json], name: str) -> float:
    """Return the sum of a resource in lists of quantities."""
    return sum(number(each[name]) or 0.0 for each in lists if name in each)
