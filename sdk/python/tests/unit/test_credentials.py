"""Credentials that are read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from openshift_ai_sdk.training import NotLoggedInError
from openshift_ai_sdk.training._credentials import load


def write(path: Path, server: str, token: str) -> None:
    """Write a kubeconfig as oc login does."""
    config = {
        "current-context": server,
        "clusters": [{"name": server, "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": server, "context": {"cluster": server, "user": "me", "namespace": "mine"}}],
    }
    path.write_text(yaml.safe_dump(config))


def test_a_new_login_is_used(tmp_path: Path) -> None:
    write(tmp_path / "config", "https://one.example.com:6443", "old")
    credentials = load(tmp_path / "config")
    write(tmp_path / "config", "https://one.example.com:6443/", "new")
    credentials.reload()
    assert credentials.token() == "new"


def test_a_login_at_another_cluster_is_not(tmp_path: Path) -> None:
    write(tmp_path / "config", "https://one.example.com:6443", "old")
    credentials = load(tmp_path / "config")
    write(tmp_path / "config", "https://two.example.com:6443", "new")
    with pytest.raises(NotLoggedInError, match=r"logged in at https://two\.example\.com:6443 now: log in again"):
        credentials.reload()
    assert (credentials.host, credentials.token()) == ("https://one.example.com:6443", "old")


def write_plugin(path: Path, **plugin: object) -> None:
    """Write a kubeconfig whose user logs in by a program."""
    write(path, "https://one.example.com:6443", "old")
    config = yaml.safe_load(path.read_text())
    config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", **plugin}}
    path.write_text(yaml.safe_dump(config))


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (
            {"command": "oc-nope", "installHint": "See https://example.com/oc-nope\n"},
            r"the program 'oc-nope', which .*config names to log in as me, is not installed, or not in PATH: "
            r"install it, or use a kubeconfig without it \(See https://example\.com/oc-nope\)",
        ),
        ({"command": "./oc-nope"}, r"the program '\./oc-nope', .* is not installed"),
        (
            {"command": "sh", "args": ["-c", "echo your session is over >&2; exit 3"]},
            r"the program 'sh', .*, failed: exec: process returned 3\. your session is over",
        ),
        ({"command": "echo", "args": ["hello"]}, r"the program 'echo', .*, failed: exec: failed to decode"),
    ],
)
def test_a_program_that_cannot_log_in_is_named(plugin: dict[str, object], message: str, tmp_path: Path) -> None:
    write_plugin(tmp_path / "config", **plugin)
    with pytest.raises(NotLoggedInError, match=message):
        load(tmp_path / "config")


def test_a_program_that_logs_in_is_used(tmp_path: Path) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "T"}}
    write_plugin(tmp_path / "config", command="echo", args=[json.dumps(credential)])
    assert load(tmp_path / "config").token() == "T"
