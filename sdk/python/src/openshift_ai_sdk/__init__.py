"""Work with OpenShift AI from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
else:
    # Type checkers would take it for the definition of any name.
    def __getattr__(name: str) -> str:
        # To ask for it takes longer than most of an import.
        if name == "__version__":
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version("openshift-ai-sdk")
            except PackageNotFoundError:
                return "unknown"
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
