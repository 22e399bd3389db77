"""Registers the model of a training in Model Registry. It needs the extra ``registry``."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from ipaddress import ip_address
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from openshift_ai_sdk.training._credentials import Credentials
from openshift_ai_sdk.training.errors import InvalidJobError, NotSupportedError, Problem, TrainingError
from openshift_ai_sdk.training.models import JobStatus

if TYPE_CHECKING:
    from model_registry import ModelRegistry
    from model_registry.types import RegisteredModel

T = TypeVar("T")

# Model Registry stores 255 characters: the name of a version or an artifact after an ID of up to 10 digits and a colon.
MAX_NAME = 244
MAX_KEY = 255


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
        """Check that Model Registry can store the model: it would keep half of one that it cannot.

        Raises:
            InvalidJobError: An argument is missing or not allowed.
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
        problems += [
            Problem(field, f"{len(value)} characters are not allowed; use {MAX_NAME} or fewer")
            for field, value in (("name", self.name), ("version", self.version))
            if isinstance(value, str) and len(value) > MAX_NAME
        ]
        problems += [
            Problem(field, f"{value!r} is not allowed; use text, such as {such!r}")
            for field, value, such in (
                ("format_name", self.format[0], "onnx"),
                ("format_version", self.format[1], "1"),
                ("description", "" if self.description is None else self.description, "with more data"),
            )
            if not isinstance(value, str)
        ]
        problems += [Problem("metadata", text) for text in self.problems_of_metadata()]
        if problems:
            raise InvalidJobError(problems)

    def problems_of_metadata(self) -> list[str]:
        """Return what is wrong with the metadata."""
        if not isinstance(self.metadata, Mapping):
            return [f"{self.metadata!r} is not allowed; use a mapping, such as {{'dataset': 'v2'}}"]
        problems = [
            f"the key {key!r} is not allowed; use text of at most {MAX_KEY} characters"
            for key in self.metadata
            if not isinstance(key, str) or len(key) > MAX_KEY
        ]
        problems += [
            f"{value!r} is not allowed for {key!r}; use text, a number, True or False"
            for key, value in self.metadata.items()
            if not isinstance(value, (str, Real))
        ]
        return problems


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
        from mr_openapi.exceptions import ConflictException, NotFoundException, OpenApiException
    except ImportError as error:
        raise NotSupportedError("this needs model-registry: pip install 'openshift-ai-sdk[registry]'") from error
    what = f"{model.name}, version {model.version}"
    try:
        client = connect(registry, credentials.token()) if isinstance(registry, str) else registry
        try:
            return record(client, status, model)
        except ConflictException:
            # Another client has created the model or the version in the meantime.
            return record(client, status, model)
    except StoreError as error:
        raise TrainingError(f"Model Registry rejects {what}: {error}") from error
    except NotFoundException as error:
        raise TrainingError(
            f"Model Registry did not register {what}: {describe(error)}; check the address, and that the server has "
            f"the API of model-registry {version('model-registry')}: pip install 'openshift-ai-sdk[registry]' installs "
            "the version that is tested"
        ) from error
    except (ClientError, OpenApiException, OSError) as error:
        raise TrainingError(f"Model Registry did not register {what}: {describe(error)}") from error


def record(client: ModelRegistry, status: JobStatus, model: Model) -> RegisteredModel:
    """Create the version of a model, and the model if it does not exist."""
    from model_registry.exceptions import StoreError

    found = client.get_registered_model(model.name)
    if found and found.name != model.name:
        # It compares names without regard to case, and _ and % match other characters.
        raise StoreError(f"it finds the model {found.name} by this name; use that name, or one that is less similar")
    try:
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
            metadata={key: recorded(value) for key, value in (result_of(status) | dict(model.metadata)).items()},
        )
    except StoreError as error:
        if client.get_model_artifact(model.name, model.version) is None:
            raise StoreError(f"{error}, but its registration was interrupted; register another version") from error
        raise


def describe(error: Exception) -> str:
    """Return the text of an error in one line, without the headers of a response."""
    code = getattr(error, "status", None)
    if code is None:
        return str(error)
    details = getattr(getattr(error, "data", None), "message", None) or getattr(error, "body", None) or ""
    return " ".join(f"{code} {getattr(error, 'reason', '')}: {details}".split()).rstrip(": ")


def recorded(value: str | int | float | bool) -> str | int | float | bool:
    """Return a value as the API of Model Registry allows it: other integers and numbers are recorded as text."""
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        whole = int(value)
        return whole if abs(whole) < 10**9 else str(whole)
    number = float(value)
    return number if isfinite(number) else str(number)


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
    return ModelRegistry(with_port(address), author=user(), user_token=token, async_runner=in_a_thread)


def with_port(address: str) -> str:
    """Return an address with a port and without a slash at its end, as the client requires: it appends to it."""
    url = urlsplit(address)
    port = "" if url.port else f":{443 if url.scheme == 'https' else 8080}"
    return f"{url.scheme}://{url.netloc.rstrip(':')}{port}{url.path.rstrip('/')}"


def user() -> str:
    """Return the name of the user. In a container, the user may have none."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"


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
