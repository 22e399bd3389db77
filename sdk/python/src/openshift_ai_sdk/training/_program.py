"""Makes a Python function the program of a job."""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from openshift_ai_sdk.training.errors import InvalidJobError, Problem

# Linux takes no longer argument than 128 KiB.
LONGEST = 120 << 10
FUTURE = "from __future__ import annotations\n"
# What every module has without importing it, and what notebooks and test runners add to the builtins.
OF_MODULES = frozenset(
    ["__annotations__", "__builtins__", "__doc__", "__loader__", "__name__", "__package__", "__spec__"]
)
NOT_BUILT_IN = frozenset(["_", "__IPYTHON__", "display", "get_ipython"])
# What the body of a class has by itself.
OF_CLASSES = frozenset(["__module__", "__qualname__", "__firstlineno__", "__classdict__", "__class__"])
READS = frozenset(["LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_GLOBAL", "DELETE_NAME"])


@dataclass(frozen=True)
class Source:
    """A function as it is sent.

    Attributes:
        name: The name that it is defined by.
        text: Its definition, which a module can have at its beginning.
        outside: The names that it uses and that neither it nor Python defines.
        wrapped: The decorators that are sent with it, as they are written.
        needed: The names that the decorators use.
    """

    name: str
    text: str
    outside: tuple[str, ...]
    wrapped: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


def command_of(func: Callable[..., object], arguments: Mapping[str, Any] | None = None) -> list[str]:
    """Return the command that calls a function with arguments in each rank.

    The function's source goes to the ranks, and nothing around it: it has to import what it uses.

    Raises:
        InvalidJobError: The function or an argument cannot be sent.
    """
    arguments = dict(arguments or {})
    source, problems = checked(func)
    problems += problems_of(func, arguments) if source else []
    if source is None or problems:
        raise InvalidJobError(problems)
    call = f"{source.name}(**__import__('json').loads({json.dumps(arguments)!r}))"
    if inspect.iscoroutinefunction(inspect.unwrap(func)):
        # A decorator may run it already.
        call = f"done = {call}\nif hasattr(done, 'send'):\n    __import__('asyncio').run(done)"
    # Kubernetes replaces $(NAME) in a command by the variable, and $$ by $.
    program = f"{source.text}\n{call}\n".replace("$", "$$")
    if len(program.encode()) > LONGEST:
        raise InvalidJobError(
            [Problem("func", f"has {len(program.encode())} bytes with its arguments; at most {LONGEST} are allowed")]
        )
    return ["python3", "-c", program]


def checked(func: Callable[..., object]) -> tuple[Source | None, list[Problem]]:
    """Return the source of a function, and the reasons why it cannot be sent."""
    bare = inspect.unwrap(func) if callable(func) else func
    if not isinstance(bare, FunctionType) or bare.__name__ == "<lambda>":
        return None, [Problem("func", f"{func!r} is not allowed; use a function that is defined with def")]
    name = bare.__name__
    if inspect.isgeneratorfunction(bare) or inspect.isasyncgenfunction(bare):
        text = f"{name} is a generator, whose code does not run when it is called; use a function without yield"
        return None, [Problem("func", text)]
    try:
        source = source_of(bare, is_wrapped=bare is not func)
    except (OSError, TypeError, SyntaxError):
        text = f"the source of {name} cannot be read; define it with def in a file or in a cell of a notebook"
        return None, [Problem("func", text)]
    problems = []
    if source.outside:
        text = f"{name} uses {', '.join(source.outside)} from outside; import or define it in the function"
        problems.append(Problem("func", text))
    imports = {each: import_of(each, bare.__globals__.get(each)) for each in source.needed}
    missing = [each for each, statement in imports.items() if not statement]
    if bare is not func and (missing or not source.wrapped):
        what = f"is decorated with {', '.join(source.wrapped)}" if source.wrapped else "is wrapped"
        text = f"{name} {what}, which is not sent; wrap what is in the function, or pass {name}.__wrapped__ without it"
        problems.append(Problem("func", text))
    lines = sorted({statement for statement in imports.values() if statement})
    head = FUTURE if source.text.startswith(FUTURE) else ""
    text = head + "".join(f"{line}\n" for line in lines) + source.text.removeprefix(head)
    return Source(source.name, text, source.outside), problems


def problems_of(func: Callable[..., object], arguments: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with the arguments of a function."""
    found = []
    try:
        inspect.signature(func).bind(**arguments)
    except TypeError as error:
        name = getattr(func, "__name__", func)
        found.append(Problem("arguments", f"do not fit {name}{inspect.signature(func)}: {error}"))
    for name, value in arguments.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            found.append(Problem(f"arguments[{name!r}]", f"{value!r} is not allowed; use what JSON can hold"))
    return found


def source_of(func: FunctionType, is_wrapped: bool) -> Source:
    """Return the source of a function, with its decorators if they have wrapped it.

    A decorator that returns the function itself has done its work when the function was defined.

    Raises:
        OSError, TypeError, SyntaxError: There is no source, or it is not the function's.
    """
    text = inspect.getsource(func)
    if text[:1].isspace():
        # As it is: to remove its indentation could change text that goes over several lines.
        text = f"if True:\n{text}"
    definition = definition_in(ast.parse(text))
    if definition.name != func.__code__.co_name:
        raise OSError("the file was changed meanwhile")
    lines = text.splitlines(keepends=True)
    first = min([definition.lineno, *(each.lineno for each in definition.decorator_list)]) - 1
    plain = "".join(lines[:first] + lines[definition.lineno - 1 :])
    # An annotation is not needed to run the function; it may use what the function does not have.
    is_future = bool(func.__code__.co_flags & __future__.annotations.compiler_flag)
    outside, head = outside_of(plain, func), ""
    if is_future or (outside and outside_of(FUTURE + plain, func) != outside):
        head = FUTURE
        outside = outside_of(FUTURE + plain, func)
    outside += tuple({"__class__"} & set(func.__code__.co_freevars))
    if not is_wrapped:
        return Source(definition.name, head + plain, outside)
    needed = tuple(each for each in outside_of(head + text, func) if each not in outside)
    wrapped = tuple(f"@{ast.unparse(each)}" for each in definition.decorator_list)
    return Source(definition.name, head + text, outside, wrapped, needed)


def definition_in(module: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the function that a module begins with; it may be indented."""
    found: ast.AST = module.body[0]
    if isinstance(found, ast.If):
        found = found.body[0]
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        raise OSError("there is no function")
    return found


def outside_of(text: str, func: FunctionType) -> tuple[str, ...]:
    """Return the global names that a module reads, in its functions and classes, too, and that nothing defines."""
    code = compile(text, "<function>", "exec", dont_inherit=True)
    read: set[str] = set()
    written: set[str] = set()
    for each in codes_in(code):
        here: set[str] = set()
        # The body of a class has names of its own.
        own: set[str] = set(OF_CLASSES)
        for step in dis.get_instructions(each):
            name = step.argval
            if step.opname == "STORE_GLOBAL" or (step.opname == "STORE_NAME" and each is code):
                # What is read first comes from outside, although it is written afterwards.
                written.update({name} - here)
            elif step.opname == "STORE_NAME":
                own.add(name)
            elif step.opname in READS and (step.opname.endswith("GLOBAL") or name not in own):
                here.add(name)
        read |= here
    return tuple(sorted(name for name in read - written - OF_MODULES if not is_built_in(name, func.__globals__)))


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all that are nested in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_in(each)


def is_built_in(name: str, around: Mapping[str, Any]) -> bool:
    """Return whether Python itself gives a name its meaning; a notebook replaces some builtins by its own."""
    if name in NOT_BUILT_IN or name not in vars(builtins):
        return False
    value = around.get(name, vars(builtins)[name])
    return value is vars(builtins)[name] or str(getattr(value, "__module__", "")).partition(".")[0] == "IPython"


def import_of(name: str, value: object) -> str | None:
    """Return the statement that imports what a name means; None if it is not of Python or of an installed package."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}" if is_installed(value.__name__) else None
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or not path.isidentifier() or not is_installed(module):
        return None
    there = getattr(sys.modules.get(module), path, None)
    return f"from {module} import {path} as {name}" if there is value else None


def is_installed(module: str) -> bool:
    """Return whether a module comes with Python or was installed, rather than written beside the function."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names:
        return root != "__main__"
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return False
    places = [spec.origin, *(spec.submodule_search_locations or [])] if spec else []
    installed = [Path(sysconfig.get_path(each)).resolve() for each in ("purelib", "platlib")]
    return any(folder in Path(place).resolve().parents for place in places if place for folder in installed)
