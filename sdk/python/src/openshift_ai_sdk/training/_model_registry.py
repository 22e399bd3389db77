"""Registers the model of a training in Model Registry. It needs the extra ``registry``."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training.errors import InvalidJobError, NotSupportedError, Problem, TrainingError
from openshift_ai_sdk.training.models import JobStatus

if TYPE_CHECKING:
    from model_registry import ModelRegistry
    from model_registry.types import RegisteredModel

T = TypeVar("T")


@dataclass(frozen=True)
class Model:
    """A model to register.

    Attributes:
        name: The name of the registered model.
        uri: Where its files are.
        version: The version, which must be new.
        format: Name and version of the format of its files.
        description: Describes the version.
        metadata: What else is recorded with the version.
    """

    name: str
    uri: str
    version: str
    format: tuple[str, str]
    description: str | None
    metadata: Mapping[str, str | int | float | bool]

    def check(self) -> None:
        """Check that the model can be registered.

        Raises:
            InvalidJobError: An argument is missing.
        """
        problems = [
            Problem(field, f"{value!r} is not allowed; use text, such as {such!r}")
            for field, value, such in (
                ("name", self.name, "fraud"),
                ("uri", self.uri, "s3://models/fraud/1"),
                ("version", self.version, "1"),
            )
            if not isinstance(value, str) or not value.strip()
        ]
        if not isinstance(self.metadata, Mapping):
            text = f"{self.metadata!r} is not allowed; use a mapping, such as {{'dataset': 'v2'}}"
            problems.append(Problem("metadata", text))
        if problems:
            raise InvalidJobError(problems)


def register(
    registry: ModelRegistry | str, credentials: Credentials, status: JobStatus, model: Model
) -> RegisteredModel:
    """Register the model of a job, with what the job's report has of the training.

    Raises:
        InvalidJobError: The registry is at an address to which the token of the cluster is not sent.
        TrainingError: The job has not succeeded, or the registry rejects the model.
    """
    if isinstance(registry, str):
        check_address(registry)
    if status.phase != "Succeeded":
        raise TrainingError(
            f"{status.job} has not succeeded ({status}): register its model after wait_for_completion() has returned"
        )
    try:
        from aiohttp import ClientError
        from model_registry.exceptions import StoreError
        from mr_openapi.exceptions import OpenApiException
    except ImportError as error:
        raise NotSupportedError("this needs model-registry: pip install 'openshift-ai-sdk[registry]'") from error
    try:
        client = connect(registry, credentials.token()) if isinstance(registry, str) else registry
        return client.register_model(
            model.name,
            model.uri,
            version=model.version,
            model_format_name=model.format[0],
            model_format_version=model.format[1],
            model_source_kind=status.kind.lower(),
            model_source_class="openshift-ai",
            model_source_group=status.namespace,
            model_source_id=status.uid,
            model_source_name=status.name,
            version_description=model.description,
            metadata={**result_of(status), **model.metadata},
        )
    except StoreError as error:
        raise TrainingError(f"Model Registry rejects {model.name}, version {model.version}: {error}") from error
    except (ClientError, OpenApiException, OSError) as error:
        raise TrainingError(
            f"Model Registry did not register {model.name}, version {model.version}: {error}"
        ) from error


def check_address(address: str) -> None:
    """Check that the token of the cluster may be sent to an address: nobody on the way may read it.

    Raises:
        InvalidJobError: The address is neither https nor on this machine.
    """
    try:
        url = urlsplit(address)
        scheme, host = url.scheme, url.hostname or ""
    except ValueError:
        scheme, host = "", ""
    if host and (scheme == "https" or (scheme == "http" and is_loopback(host))):
        return
    text = (
        f"{address!r} is not allowed, because your login to the cluster would be sent to it without encryption; use an "
        "address that starts with https://, or a model_registry.ModelRegistry with a token of its own (user_token)"
    )
    raise InvalidJobError([Problem("registry", text)])


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def connect(address: str, token: str | None) -> ModelRegistry:
    """Return a client of the registry at an address, for a user."""
    from model_registry import ModelRegistry

    # With a runner of its own it leaves the notebook's event loop alone.
    return ModelRegistry(address, author=getpass.getuser(), user_token=token, async_runner=in_a_thread)


def in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, whatever runs in this thread."""
    run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, work).result()


def result_of(status: JobStatus) -> dict[str, str | int | float | bool]:
    """Return what describes the training: its job, its size, and the last values that it reported."""
    result: dict[str, str | int | float | bool] = {
        "job": f"{status.namespace}/{status.name}",
        "job_kind": status.kind,
        "job_uid": status.uid,
    }
    if status.mpi and status.mpi.ranks:
        result["ranks"] = status.mpi.ranks
    if status.training:
        values = {"accuracy": status.training.accuracy, "loss": status.training.loss, "epoch": status.training.epoch}
        result |= {name: value for name, value in values.items() if value is not None}
    return result
