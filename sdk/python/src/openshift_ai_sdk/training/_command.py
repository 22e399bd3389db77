"""The command of a job: its words, and the mpirun that is put before it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath
from typing import Any

from openshift_ai_sdk.training.errors import Problem

Command = str | Sequence[str]

# A command that has one of these starts ranks by itself and is run as it is.
LAUNCHERS = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun", "deepspeed"}
# Programs that read a script in the argument after an option such as -c or -ec.
SHELLS = {"ash", "bash", "dash", "ksh", "sh", "zsh"}
SCRIPT_OPTION, LONG_OPTION = re.compile(r"-[A-Za-z]*c"), re.compile(r"--[a-z]")
# The flags of mpirun that set the number of ranks.
RANK_FLAGS = {"-n", "--n", "-np", "--np", "-c", "--c"}


@dataclass(frozen=True)
class LaunchOptions:
    """What a TrainJob's runtime decides about: options of the mpirun that the job gets, and which others it may have.

    Attributes:
        flags: More flags.
        workdir: The working folder of ranks, for which a TrainJob has no field.
        options: The names of the job's options that only some runtimes apply.
    """

    flags: tuple[str, ...] = ()
    workdir: str | None = None
    options: tuple[str, ...] = field(default=(), compare=False)

    def words(self, implementation: str | None) -> list[str]:
        """Return the flags of an implementation's mpirun."""
        folder = [] if self.workdir is None else ["-wdir" if is_hydra(implementation) else "--wdir", self.workdir]
        return [*folder, *self.flags]


def is_hydra(implementation: str | None) -> bool:
    """Return whether the mpirun of an implementation is that of Hydra; Open MPI has the other one."""
    return (implementation or "").lower() in ("intel", "mpich")


def launched(command: list[str], ranks: int, implementation: str | None, flags: Sequence[str] = ()) -> list[str]:
    """Return the command that starts the ranks: mpirun is put before it where it is needed.

    Each line of output is tagged with its rank, which get_logs removes again.
    """
    return command if starts_ranks(command) else ["mpirun", tag_of(implementation), *flags, "-n", str(ranks), *command]


def tag_of(implementation: str | None) -> str:
    """Return the flag by which an implementation's mpirun tags lines of output with their rank."""
    return "-prepend-rank" if is_hydra(implementation) else "--tag-output"


def split_launch(command: Sequence[str]) -> tuple[str, list[str], list[str]] | None:
    """Split a command that launched made: into the tag of its output, further flags, and the rest from -n on.

    Example:
        >>> split_launch(["mpirun", "--tag-output", "-v", "-n", "2", "train.py"])
        ('--tag-output', ['-v'], ['-n', '2', 'train.py'])
    """
    if len(command) < 5 or command[0] != "mpirun" or command[1] not in ("--tag-output", "-prepend-rank"):
        return None
    words = list(command[2:])
    at = words.index("-n") if "-n" in words else len(words)
    if at + 2 >= len(words) or not words[at + 1].isdecimal():
        return None
    return command[1], words[:at], words[at:]


def starts_ranks(command: Sequence[str]) -> bool:
    """Return whether a command starts ranks by itself, be it in a script of a shell.

    Of other programs, only whole words count: the source of a Python program may have any words.
    """
    calls = [list(command)]
    for at in range(2, len(command)):
        if SCRIPT_OPTION.fullmatch(command[at - 1]) and any(base(word) in SHELLS for word in command[: at - 1]):
            calls += [call.split() for call in re.split(r"[\n;&|()]", command[at])]
    return any(is_launcher(call, at) for call in calls for at in range(len(call)))


def is_launcher(call: Sequence[str], at: int) -> bool:
    """Return whether a word of a call starts ranks. ``deepspeed`` may be a value, as in ``--strategy deepspeed``."""
    is_value = at > 0 and LONG_OPTION.match(call[at - 1]) is not None
    return base(call[at]) in LAUNCHERS and not (is_value and base(call[at]) == "deepspeed")


def base(word: str) -> str:
    """Return the last part of a path."""
    return PurePosixPath(word).name


def has_launcher(command: Command | None) -> bool:
    """Return whether a command can be read and starts ranks by itself."""
    try:
        return is_command(command) and starts_ranks(words_of(command or ""))
    except ValueError:
        return False


def words_of(command: Command) -> list[str]:
    """Return a command as a list of words. Text that only a shell understands is given to one."""
    if not isinstance(command, str):
        return [str(word) for word in command]
    if re.search(r"[|&;<>()$`*?~\n]", command) or re.match(r"\s*[A-Za-z_]\w*=", command, re.ASCII):
        return ["sh", "-c", command]
    return shlex.split(command)


def flags_of(flags: Any) -> list[str]:
    """Return flags as a list of words. No shell reads them."""
    return shlex.split(flags) if isinstance(flags, str) else [str(word) for word in flags]


def is_command(value: object) -> bool:
    """Return whether a value is text, or a list of text and numbers."""
    if isinstance(value, str):
        return True
    return isinstance(value, Sequence) and all(isinstance(word, str | int | float | PurePath) for word in value)


def problems_of_flags(flags: object, command: Command | None) -> list[Problem]:
    """Return what is wrong with flags of the mpirun that is put before a command."""
    if not is_command(flags):
        return [
            Problem("mpi_flags", f"{flags!r} is not allowed; use text, or a list of text, such as '--bind-to core'")
        ]
    try:
        words = flags_of(flags)
    except ValueError as error:
        return [Problem("mpi_flags", f"{flags!r} cannot be read: {error}")]
    if not words:
        return []
    if has_launcher(command):
        text = "cannot be combined with a command that starts ranks itself; write the flags in the command"
        return [Problem("mpi_flags", text)]
    if not words[0].startswith("-"):
        return [Problem("mpi_flags", f"{flags!r} is not allowed; use flags of mpirun, such as '--bind-to core'")]
    number = next((name for name in (word.partition("=")[0] for word in words) if name in RANK_FLAGS), None)
    if number:
        text = f"{flags!r} is not allowed: {number} sets the number of ranks; use workers and slots_per_worker"
        return [Problem("mpi_flags", text)]
    return []
