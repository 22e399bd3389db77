"""Creates, changes and deletes runtimes, as ``kubectl odh mpijob runtimes`` and the dashboard do."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from openshift_ai_sdk.training import _runtimes
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json, Request
from openshift_ai_sdk.training._job_spec import IMPLEMENTATIONS
from openshift_ai_sdk.training._kinds import Resource
from openshift_ai_sdk.training._runtime_settings import RuntimeSettings
from openshift_ai_sdk.training._runtimes import OF_CLUSTER, OF_NAMESPACE, Runtime
from openshift_ai_sdk.training._shipped_runtimes import SHIPPED, shipped, shipped_for
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._value_rules import NAMESPACE, is_object_name
from openshift_ai_sdk.training.errors import (
    APIError,
    InvalidJobError,
    JobExistsError,
    JobNotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    Problem,
)

DEPLOYMENT = Resource("apps/v1", "Deployment", "deployments")
OPERATOR_LABEL = "app.kubernetes.io/name=mpijob-operator"
OPERATOR_NAMESPACE = "mpijob-system"
# The user of shipped runtimes on clusters that pick none, as in config/runtimes/kubernetes.
DEFAULT_USER = 1000
KINDS = {resource.kind.lower(): resource for resource in (OF_NAMESPACE, OF_CLUSTER)}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# How often a change is made anew that met another one.
TRIES = 5


@dataclass(frozen=True)
class NewRuntime:
    """A runtime to create.

    Attributes:
        name: Its name.
        of_cluster: Whether it is for all namespaces.
        implementation: The MPI of the shipped runtime to start from; None for OpenMPI.
        source: The runtime to start from; None for that of the implementation.
        settings: What is different.
    """

    name: str
    of_cluster: bool
    implementation: str | None
    source: str | None
    settings: RuntimeSettings

    def problems(self) -> list[Problem]:
        """Return what is wrong with it, whatever the runtime to start from."""
        found = []
        if not isinstance(self.name, str) or not NAMESPACE.fullmatch(self.name):
            allowed = "use at most 63 lower-case letters, digits and '-', such as 'mpi-a100'"
            found.append(Problem("name", f"{self.name!r} is not allowed; {allowed}"))
        if self.implementation is not None and self.source is not None:
            text = "selects a shipped runtime, and cannot be combined with from_runtime"
            found.append(Problem("implementation", text))
        elif self.implementation is not None and self.implementation not in IMPLEMENTATIONS:
            text = f"{self.implementation!r} is not allowed; use one of {', '.join(IMPLEMENTATIONS)}"
            found.append(Problem("implementation", text))
        if self.source is not None:
            found += problems_of_reference(self.source, "from_runtime")
        is_intel = self.implementation == "Intel" or self.source == SHIPPED + shipped_for("Intel")
        if is_intel and self.settings.image is None:
            text = "is required: nobody publishes an image with Intel MPI; build one (images/README.md)"
            found.append(Problem("image", text))
        return found + self.settings.problems()

    @property
    def reference(self) -> str:
        """The reference of the runtime to start from."""
        return self.source or SHIPPED + shipped_for(self.implementation or IMPLEMENTATIONS[0])


def problems_of_reference(value: object, field: str) -> list[Problem]:
    """Return what is wrong with the reference of a runtime."""
    kind, _, name = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if name and is_object_name(name) and "$" not in name and (not kind or kind == "shipped" or kind.lower() in KINDS):
        return []
    text = "use the name of a runtime, 'shipped/NAME', 'trainingruntime/NAME' or 'clustertrainingruntime/NAME'"
    return [Problem(field, f"{value!r} is not allowed; {text}")]


def problems_of_scope(namespace: str | None, cluster: object) -> list[Problem]:
    """Return what is wrong with where the runtime is."""
    if not isinstance(cluster, bool):
        return [Problem("cluster", f"{cluster!r} is not allowed; use True or False")]
    if cluster and namespace is not None:
        return [Problem("namespace", "cannot be combined with cluster=True: the runtime is for all namespaces")]
    return []


async def resolve(cluster: Cluster, namespace: str, reference: str) -> Runtime:
    """Return the runtime that a reference means.

    Raises:
        InvalidJobError: The namespace and the cluster have one of this name.
        JobNotFoundError: There is no such runtime.
    """
    kind, _, name = reference.rpartition("/")
    if reference.startswith(SHIPPED):
        return _runtimes.read(shipped(name))
    found: list[Json] = []
    refused: PermissionDeniedError | None = None
    for resource in [KINDS[kind.lower()]] if kind else KINDS.values():
        try:
            item = await cluster.api.find(resource, namespace if resource is OF_NAMESPACE else None, name)
        except PermissionDeniedError as error:
            refused = refused or error
            continue
        found += [item] if item is not None else []
    if len(found) > 1:
        both = " or ".join(f"{each}/{name}" for each in KINDS)
        raise InvalidJobError([Problem("", f"there are two runtimes {name!r}; use {both}")])
    if not found and refused is not None:
        raise refused
    if not found:
        names = [runtime.name for runtime in await _runtimes.all_of(cluster, namespace)]
        raise JobNotFoundError(
            f"runtime {reference!r} does not exist{nearest(name, names)}; list_runtimes() returns all"
        )
    return _runtimes.read(found[0])


async def create(cluster: Cluster, namespace: str, new: NewRuntime, dry_run: str | None) -> Runtime:
    """Create a runtime with the specification of another, and return it."""
    source = await resolve(cluster, namespace, new.reference)
    settings = new.settings
    if new.reference.startswith(SHIPPED) and dry_run != "client":
        settings = await fit_cluster(cluster, settings)
    manifest = copy_of(source, new.name, None if new.of_cluster else namespace, settings)
    if dry_run == "client":
        return _runtimes.read(manifest)
    resource, where = place_of(namespace, new.of_cluster)
    try:
        created = await cluster.api.create(resource, where, manifest, dry_run == "server", strict=False)
    except JobExistsError as error:
        raise JobExistsError(f"runtime {new.name!r} already exists; use another name, or delete it first") from error
    except PermissionDeniedError as error:
        hint = f"; without cluster=True, it is created in the namespace {namespace}" if new.of_cluster else ""
        raise PermissionDeniedError(f"{error}{hint}") from error
    return _runtimes.read(created)


def place_of(namespace: str, of_cluster: bool) -> tuple[Resource, str | None]:
    """Return the kind of a runtime, and its namespace."""
    return (OF_CLUSTER, None) if of_cluster else (OF_NAMESPACE, namespace)


def copy_of(source: Runtime, name: str, namespace: str | None, settings: RuntimeSettings) -> Json:
    """Return a runtime with the specification of another, and other settings; without a namespace, of the cluster.

    Raises:
        InvalidJobError: The settings do not fit the other runtime.
    """
    changed = settings.applied_to(source)
    notes = {key: value for key, value in changed["metadata"]["annotations"].items() if key != LAST_APPLIED}
    kept = {"labels": changed["metadata"].get("labels"), "annotations": notes}
    resource = OF_NAMESPACE if namespace else OF_CLUSTER
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **{field: value for field, value in kept.items() if value},
    }
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": changed["spec"],
    }


async def fit_cluster(cluster: Cluster, settings: RuntimeSettings) -> RuntimeSettings:
    """Return the settings of a copy of a shipped runtime with those that depend on the cluster."""
    if settings.run_as_user is None and not await picks_users(cluster):
        settings = replace(settings, run_as_user=DEFAULT_USER)
    if settings.agent_image is None:
        settings = replace(settings, agent_image=await agent_image(cluster))
    return settings


async def picks_users(cluster: Cluster) -> bool:
    """Return whether the cluster picks users for pods, as OpenShift does."""
    try:
        served = await cluster.api.call(Request("GET", "/apis/security.openshift.io/v1"))
    except (JobNotFoundError, NotSupportedError):
        return False
    return any(each.get("kind") == "SecurityContextConstraints" for each in served.get("resources") or [])


async def agent_image(cluster: Cluster) -> str | None:
    """Return the image of the agent that the operator gives to jobs; None if the user may not read its Deployment."""
    for namespace in (None, OPERATOR_NAMESPACE):
        with suppress(PermissionDeniedError):
            found, _ = await cluster.api.list(DEPLOYMENT, namespace, OPERATOR_LABEL)
            return next(filter(None, map(agent_image_in, found[:1])), None)
    return None


def agent_image_in(deployment: Json) -> str | None:
    """Return the image of the agent that the Deployment of an operator names."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        for word in [*(container.get("command") or []), *(container.get("args") or [])]:
            flag, _, image = word.lstrip("-").partition("=")
            if flag == "agent-image":
                return image or None
        for variable in container.get("env") or []:
            if variable["name"] == "AGENT_IMAGE":
                return variable.get("value") or None
    return None


async def update(cluster: Cluster, namespace: str, name: str, of_cluster: bool, settings: RuntimeSettings) -> Runtime:
    """Change settings of a runtime, and return it."""
    resource, where = place_of(namespace, of_cluster)
    for left in reversed(range(TRIES)):
        manifest = settings.applied_to(_runtimes.read(await existing(cluster, namespace, name, of_cluster)))
        try:
            return _runtimes.read(await cluster.api.replace(resource, where, name, manifest))
        except APIError as error:
            # Somebody else has changed it meanwhile.
            if error.reason != "Conflict" or not left:
                raise
    raise AssertionError("the last try returns or raises")


async def delete(cluster: Cluster, namespace: str, name: str, of_cluster: bool) -> None:
    """Delete a runtime; a warning names finalizers that keep it for now."""
    resource, where = place_of(namespace, of_cluster)
    meta = (await existing(cluster, namespace, name, of_cluster))["metadata"]
    with suppress(JobNotFoundError):  # Somebody else has deleted it meanwhile.
        await cluster.api.delete(resource, where, name, meta["uid"])
    if finalizers := meta.get("finalizers"):
        text = f"runtime {name!r} is deleted when its finalizers allow it: {', '.join(finalizers)}"
        warnings.warn(text, stacklevel=2)


async def existing(cluster: Cluster, namespace: str, name: str, of_cluster: bool) -> Json:
    """Return a runtime of the namespace, or of the cluster.

    Raises:
        JobNotFoundError: There is no such runtime; the message names one with this name elsewhere.
    """
    resource, where = place_of(namespace, of_cluster)
    found = await cluster.api.find(resource, where, name)
    if found is not None:
        return found
    of_kind = {of_cluster: await names_of(cluster, resource, where)}
    with suppress(PermissionDeniedError):
        of_kind[not of_cluster] = await names_of(cluster, *place_of(namespace, not of_cluster))
    if name in of_kind.get(not of_cluster, ()):
        hint = f"; the namespace {namespace} has one: leave out cluster=True" if of_cluster else ""
        hint = hint or "; the cluster has one, for all namespaces: cluster=True means that one"
    else:
        hint = f"{nearest(name, of_kind[of_cluster])}; list_runtimes() returns all"
    place = "cluster" if of_cluster else f"namespace {namespace}"
    raise JobNotFoundError(f"runtime {name!r} does not exist in the {place}{hint}")


async def names_of(cluster: Cluster, resource: Resource, namespace: str | None) -> Iterable[str]:
    """Return the names of the runtimes of a kind."""
    return [item["metadata"]["name"] for item in (await cluster.api.list(resource, namespace))[0]]
