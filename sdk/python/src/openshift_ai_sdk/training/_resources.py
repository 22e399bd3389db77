"""The CPUs, memory and GPUs that pods request."""

from __future__ import annotations

from collections.abc import Mapping

from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._resource_rules import RESOURCE_RULE, fields_of, problems_of_fields
from openshift_ai_sdk.training.errors import Problem
from openshift_ai_sdk.training.models import ResourceRequirements

# What the names of resources have that measure a share of a GPU, or only give access to monitor it.
PARTS_OF_GPUS = ("mem", "core", "tiles", "percent", "ratio", "monitoring")
# Resources whose requests and limits may differ.
OVERCOMMITTED = ("cpu", "memory", "ephemeral-storage")


def as_resources(sizes: ResourceRequirements | Mapping[str, int | float | str] | None) -> ResourceRequirements:
    """Return resources in either form as ResourceRequirements."""
    if sizes is None:
        return ResourceRequirements()
    return sizes if isinstance(sizes, ResourceRequirements) else ResourceRequirements.from_mapping(sizes)


def resource_lists(size: ResourceRequirements) -> Json:
    """Return requests and limits as a container has them."""
    requests: Json = {}
    limits: Json = {}
    if size.cpu is not None:
        requests["cpu"] = str(size.cpu)
    if size.memory is not None:
        requests["memory"] = limits["memory"] = str(size.memory)
    devices = {size.gpu_resource: size.gpu} if size.gpu else {}
    for name, count in {**devices, **size.other}.items():
        requests[name] = limits[name] = str(count)
    return {"requests": requests, "limits": limits}


def gpus_of(size: Json) -> int:
    """Return how many GPUs resources ask for."""
    for part in ("limits", "requests"):
        for name, count in (size.get(part) or {}).items():
            if "gpu" in name.lower():
                return int(count)
    return 0


def is_gpu(resource: str) -> bool:
    """Return whether a resource counts GPUs, MIG slices or similar accelerators, by the rule of the command line.

    Example:
        >>> [is_gpu(name) for name in ("amd.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "cpu")]
        [True, True, False, False]
    """
    lower = resource.lower()
    device = lower.partition("/")[2]
    if any(part in device for part in PARTS_OF_GPUS) and not device.startswith("mig-"):
        return False
    return "gpu" in lower or lower.startswith("nvidia.com/mig-") or lower == "habana.ai/gaudi"


def request_limits(size: Json) -> None:
    """Set the requests that are missing to the limits, as Kubernetes does in pods.

    Kubeflow Trainer since v2.3 keeps the requests of a runtime if a TrainJob only sets limits.
    """
    for resource in OVERCOMMITTED:
        if resource in (size.get("limits") or {}) and resource not in (size.get("requests") or {}):
            size["requests"] = {**(size.get("requests") or {}), resource: size["limits"][resource]}


def problems_of_resources(
    label: str, sizes: ResourceRequirements | Mapping[str, int | float | str] | None
) -> list[Problem]:
    """Return the problems of a resource list."""
    if sizes is not None and not isinstance(sizes, ResourceRequirements | Mapping):
        text = f"{sizes!r} is not allowed; use ResourceRequirements(cpu=4), or a mapping such as {{'cpu': 4}}"
        return [Problem(label, text)]
    if isinstance(sizes, Mapping) and (wrong := [name for name in sizes if not isinstance(name, str)]):
        return [Problem(label, f"{name!r} is not the name of a resource; {RESOURCE_RULE}") for name in wrong]
    fields = fields_of(sizes) if isinstance(sizes, Mapping) else vars(sizes or ResourceRequirements())
    return problems_of_fields(label, fields)
