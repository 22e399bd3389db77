"""Finds the cluster and the credentials: a kubeconfig, also that of ``oc login``, or those of the pod."""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from openshift_ai_sdk.training.errors import NotLoggedInError

ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass
class Credentials:
    """How to reach the cluster.

    Attributes:
        configuration: A ``kubernetes.client.Configuration``.
        namespace: The namespace of the kubeconfig's context, or of the notebook's pod.
        kubeconfig: Where the credentials are from; None for those of the pod, or of a given configuration.
    """

    configuration: Any
    namespace: str = "default"
    kubeconfig: str | None = None
    context: str | None = None
    given: bool = field(default=False, repr=False)

    @property
    def host(self) -> str:
        """The address of the API server."""
        return str(self.configuration.host)

    def headers(self) -> dict[str, str]:
        """Return the headers that prove who the user is. A token that is about to expire is renewed."""
        auth = self.configuration.auth_settings().get("BearerToken")
        if auth is None and (self.configuration.username or self.configuration.password):
            return {"authorization": self.configuration.get_basic_auth_token()}
        return {"authorization": auth["value"]} if auth and auth["value"] else {}

    def token(self) -> str | None:
        """Return the token that proves who the user is; None if something else does."""
        kind, _, value = self.headers().get("authorization", "").partition(" ")
        return value if kind == "Bearer" else None

    def reload(self) -> None:
        """Read the credentials again; those that were given as a configuration stay as they are.

        Raises:
            NotLoggedInError: They are for another cluster now: jobs must not move there.
        """
        if self.given:
            return
        fresh = load(self.kubeconfig, self.context) if self.kubeconfig else load()
        if fresh.host.rstrip("/") != self.host.rstrip("/"):
            raise NotLoggedInError(
                f"the cluster at {self.host} does not accept your login, and you are logged in at {fresh.host} now: "
                "log in again, for example with oc login, or use the other cluster with a new TrainingClient"
            )
        self.configuration = fresh.configuration


def load(
    kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None, configuration: object = None
) -> Credentials:
    """Find the cluster: the given configuration or kubeconfig, else $KUBECONFIG, ~/.kube/config, or the pod's account.

    Args:
        kubeconfig: Path of a kubeconfig file.
        context: The context in it; by default the current one.
        configuration: A ``kubernetes.client.Configuration`` to use as it is.

    Raises:
        NotLoggedInError: No credentials were found, or they cannot be read.
    """
    from kubernetes import client, config

    if configuration is not None:
        return checked(Credentials(configuration, given=True), "the given configuration")
    paths = os.fspath(kubeconfig or "") or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    exists = any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep))
    loaded = client.Configuration()
    try:
        if kubeconfig or context or exists:
            contexts, active = config.list_kube_config_contexts(config_file=paths)
            chosen = next((item for item in contexts if item["name"] == context), None) if context else active
            if chosen is None:
                names = ", ".join(str(item["name"]) for item in contexts)
                raise NotLoggedInError(f"the kubeconfig {paths} has no context {context!r}; use one of {names}")
            with log_in(paths, chosen["context"].get("user"), loaded):
                config.load_kube_config(config_file=paths, context=context, client_configuration=loaded)
            return checked(Credentials(loaded, chosen["context"].get("namespace") or "default", paths, context), paths)
        config.load_incluster_config(client_configuration=loaded)
    except (config.ConfigException, yaml.YAMLError, OSError, TypeError, AttributeError) as error:
        # A kubeconfig of another form than expected raises TypeError.
        why = f"{paths}: {error}" if exists else f"there is no file {paths}, and this is no pod: {error}"
        raise NotLoggedInError(
            f"no cluster is configured ({why}): log in, for example with oc login, or name a kubeconfig in "
            "$KUBECONFIG or TrainingClient(kubeconfig=...)"
        ) from error
    name = SERVICE_ACCOUNT / "namespace"
    return Credentials(loaded, name.read_text().strip() if name.is_file() else "default")


class _Collector(logging.Handler):
    """Keeps the errors that are logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def log_in(paths: str, user: object, loaded: Any) -> Iterator[None]:
    """Name the program of a kubeconfig that brings no credentials; the client only logs why, and goes on without.

    Raises:
        NotLoggedInError: The program is missing, or has failed.
    """
    files = [Path(path).expanduser() for path in paths.split(os.pathsep)]
    documents = [yaml.safe_load(path.read_text()) or {} for path in files if path.is_file()]
    entries = [entry for document in documents for entry in document.get("users") or ()]
    plugin = next(((entry.get("user") or {}).get("exec") for entry in entries if entry.get("name") == user), None)
    if not plugin:
        yield
        return
    errors = _Collector()
    logging.getLogger().addHandler(errors)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(errors)
    if loaded.api_key.get("authorization") or loaded.cert_file or loaded.username:
        return
    program, hint = plugin.get("command"), plugin.get("installHint")
    subject = f"the program {program!r}, which {paths} names to log in as {user}"
    if any(text.startswith(f"[Errno {errno.ENOENT}]") for text in errors.texts):
        text = "is not installed, or not in PATH: install it, or use a kubeconfig without it"
        raise NotLoggedInError(f"{subject}, {text}{f' ({str(hint).strip()})' if hint else ''}")
    raise NotLoggedInError(f"{subject}, failed: {'; '.join(errors.texts) or 'it brought no credentials'}")


def checked(credentials: Credentials, source: str) -> Credentials:
    """Return credentials that name a cluster by a URL.

    Raises:
        NotLoggedInError: They do not.
    """
    host = getattr(credentials.configuration, "host", None)
    if not isinstance(host, str) or not ADDRESS.fullmatch(host):
        raise NotLoggedInError(
            f"the address of the cluster in {source} is {host!r}; use a URL, such as 'https://api.example.com:6443'"
        )
    return credentials
