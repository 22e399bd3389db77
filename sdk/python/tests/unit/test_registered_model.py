"""Which models can be registered, and by whom."""

from __future__ import annotations

import getpass
import sys
from typing import Any

import pytest

from openshift_ai_sdk.training import InvalidJobError, NotSupportedError, _model_registry
from openshift_ai_sdk.training._model_registry import MAX_KEY, MAX_NAME, Model

VALID: dict[str, Any] = {
    "name": "fraud",
    "uri": "s3://m",
    "version": "1",
    "format": ("", ""),
    "description": None,
    "metadata": {},
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": ""}, "name: '' is not allowed; use text, such as 'fraud'"),
        ({"version": 1}, "version: 1 is not allowed; use text, such as '1'"),
        ({"name": "n" * (MAX_NAME + 1)}, "name: 245 characters are not allowed; use 244 or fewer"),
        ({"version": "1" * (MAX_NAME + 1)}, "version: 245 characters are not allowed; use 244 or fewer"),
        ({"format": (1, "")}, "format_name: 1 is not allowed; use text, such as 'onnx'"),
        ({"format": ("onnx", 2)}, "format_version: 2 is not allowed; use text, such as '1'"),
        ({"description": 5}, "description: 5 is not allowed; use text, such as 'with more data'"),
        ({"metadata": "x"}, "metadata: 'x' is not allowed; use a mapping, such as {'dataset': 'v2'}"),
        ({"metadata": {1: "x"}}, "metadata: the key 1 is not allowed; use text of at most 255 characters"),
        (
            {"metadata": {"k" * (MAX_KEY + 1): 1}},
            f"metadata: the key {'k' * 256!r} is not allowed; use text of at most",
        ),
        ({"metadata": {"a": [1]}}, "metadata: [1] is not allowed for 'a'; use text, a number, True or False"),
        ({"metadata": {"a": None}}, "metadata: None is not allowed for 'a'; use text, a number, True or False"),
    ],
)
def test_what_cannot_be_stored_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidJobError) as invalid:
        Model(**{**VALID, **change}).check()
    (found,) = invalid.value.problems
    assert str(found).startswith(problem)


def test_user_may_have_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (KeyError("getpwuid(): uid not found: 1000740000"), OSError("No username set in the environment")):

        def fail(error: Exception = error) -> str:
            raise error

        monkeypatch.setattr(getpass, "getuser", fail)
        assert _model_registry.user() == "unknown"


def test_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Status:
        phase = "Succeeded"

    monkeypatch.setitem(sys.modules, "model_registry", None)
    monkeypatch.delitem(sys.modules, "model_registry.exceptions", raising=False)
    status: Any = Status()
    with pytest.raises(NotSupportedError, match=r"pip install 'openshift-ai-sdk\[registry\]'"):
        _model_registry.register("https://registry", status, status, Model(**VALID))
