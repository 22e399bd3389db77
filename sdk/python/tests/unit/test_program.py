"""Functions as people write them, each run as its rank runs it."""
# ruff: noqa: E501 - a function is read more easily in one line

from __future__ import annotations

import importlib.util
import itertools
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from openshift_ai_sdk.training import InvalidJobError, _program

# What is at the top of a script or notebook.
TOP = """
import asyncio
import contextlib
import functools
import math as m
import os
import time
from typing import Any, Optional

loss = 0.5
rate = 0.1
Point = tuple
input = [1, 2]


def register(func):
    func.registered = True
    return func


def timer(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        began = time.time()
        result = func(*args, **kwargs)
        print(time.time() - began)
        return result

    return wrapper


def bare_wrapper(func):
    def wrapper(**kwargs):
        return func(**kwargs)

    return wrapper


def helper():
    return 1


class Model:
    loss = 1
"""

RIGHT = {
    "nothing of its own": "def f():\n    pass",
    "an import that the script has, too": "def f():\n    import os\n    print(os.getcwd())",
    "an import under the script's name for it": "def f():\n    import math as m\n    assert m.pi > 3",
    "from import": "def f():\n    from os import path as os\n    os.join('a', 'b')",
    "an import in a branch": "def f(x=1):\n    if x:\n        import os\n    else:\n        os = None\n    os.getcwd()",
    "an attribute that is called like a global": (
        "def f():\n    class Result:\n        loss = 2\n    o = Result()\n    print(o.loss, o.loss + 1)\n    o.rate = 3"
    ),
    "a method that is called like a global": (
        "def f():\n    class Result:\n        def helper(self):\n            return 1\n    Result().helper()"
    ),
    "a keyword that is called like a global": "def f():\n    print(dict(loss=1, rate=2))",
    "a local that hides a global": "def f():\n    loss = 1\n    loss += 1\n    print(loss)",
    "an argument that hides a global": "def f(loss=2, *, rate=1):\n    print(loss * rate)",
    "a loop variable that hides a global": "def f():\n    for loss in range(2):\n        print(loss)",
    "a comprehension": "def f():\n    print([loss for loss in range(3)], {rate: 1 for rate in 'ab'})",
    "a generator expression": "def f():\n    print(sum(loss * 2 for loss in range(3)))",
    "a lambda": "def f():\n    print((lambda loss: loss + 1)(1))",
    "a nested function": "def f():\n    def inner(n):\n        return n + 1\n    print(inner(1))",
    "a nested function that closes over a local": (
        "def f(start=1):\n    rate = start\n    def inner():\n        nonlocal rate\n        rate += 1\n        return rate\n"
        "    assert inner() == 2"
    ),
    "a nested function that uses an import": (
        "def f():\n    import os\n    def inner():\n        return os.getcwd()\n    inner()"
    ),
    "a nested class": (
        "def f():\n    class Net:\n        size = 3\n        double = size * 2\n        def run(self):\n"
        "            return self.size\n    assert Net().run() == 3 and Net.double == 6"
    ),
    "a nested class with super": (
        "def f():\n    class A:\n        def run(self):\n            return 1\n    class B(A):\n        def run(self):\n"
        "            return super().run() + len(__class__.__name__)\n    assert B().run() == 2"
    ),
    "a nested dataclass": (
        "def f():\n    from dataclasses import dataclass\n    @dataclass\n    class P:\n        x: int = 1\n"
        "    assert P(2).x == 2"
    ),
    "recursion": "def f(n=3):\n    return 1 if n == 0 else n * f(n - 1)",
    "recursion of a nested function": "def f():\n    def g(n):\n        return n and g(n - 1)\n    g(3)",
    "builtins": "def f():\n    print(len([1]), isinstance(1, int), max(1, 2), sorted([2, 1]), open, range, Exception)",
    "exceptions": "def f():\n    try:\n        raise ValueError('x')\n    except (ValueError, KeyError) as error:\n        print(error)",
    "with": "def f():\n    import contextlib\n    with contextlib.suppress(OSError) as loss:\n        print(loss)",
    "match": "def f(x=1):\n    match x:\n        case int(loss):\n            print(loss)\n        case _:\n            raise ValueError",
    "a walrus": "def f():\n    if (loss := 3) > 1:\n        print(loss)",
    "a format string": "def f(x=1.5):\n    print(f'{x:.1f} {x!r} {x=}')",
    "star arguments": "def f(*args, **kwargs):\n    print(args, kwargs)",
    "a global that it sets": "def f():\n    global count\n    count = 0\n    def up():\n        global count\n        count += 1\n    up()\n    assert count == 1",
    "a global that one inner function sets for another": (
        "def f():\n    def use():\n        return state\n    def init():\n        global state\n        state = 1\n"
        "    init()\n    assert use() == 1"
    ),
    "__name__": "def f():\n    assert __name__ == '__main__'",
    "a docstring": "def f():\n    '''Uses loss and os.'''\n    # and rate",
    "text that begins at the left": "def f():\n    text = '''\nleft\n  two\n'''\n    assert text == '\\nleft\\n  two\\n'",
    "defaults": "def f(a=1, b='x', c=None, d=(1, 2), *, e=len('abc')):\n    assert e == 3",
    "annotations of builtins": "def f(a: int = 1, b: 'str' = '', *c: float) -> None:\n    pass",
    "annotations of typing": "def f(a: Optional[int] = None, b: Any = None) -> Optional[str]:\n    pass",
    "annotations of a module": "def f(a: os.PathLike = None) -> Model:\n    pass",
    "annotations of a nested function": "def f():\n    def g(x: Point) -> Model:\n        return x\n    g(1)",
    "an annotated local": "def f():\n    x: Model = 1\n    print(x)",
    "an annotation by text": "def f(a: 'np.ndarray' = None):\n    pass",
    "async": "async def f():\n    import asyncio\n    await asyncio.sleep(0)\n    print('ran')",
    "async with a nested function": "async def f():\n    async def g():\n        return 1\n    assert await g() == 1",
    "a decorator that returns the function": "@register\ndef f():\n    print('ran')",
    "a decorator of Python": "@functools.lru_cache(maxsize=None)\ndef f(a=1):\n    return a",
    "two decorators": "@functools.lru_cache\n@functools.lru_cache()\ndef f():\n    return 1",
    "a decorator within": "def f():\n    import functools\n    @functools.lru_cache\n    def g():\n        return 1\n    g()",
    "a function in a branch": "if True:\n    def f():\n        text = '''\nleft'''\n        assert text == '\\nleft'",
    "a static method": "class C:\n    @staticmethod\n    def f():\n        import os\n        os.getcwd()\nf = C.f",
    "tabs": "def f():\n\timport os\n\tos.getcwd()",
    "a long signature": "def f(\n    a=1,\n    b=2,\n):\n    assert a + b == 3",
    "one line": "def f(): import os; os.getcwd()",
    "the function without its wrapper": "@timer\ndef g():\n    pass\nf = g.__wrapped__",
    "named like a module it needs": "def json():\n    pass\nf = json",
    "a name of the language in another letter case": "def f():\n    Loss = 1\n    print(Loss)",
}

# With what the message has to name.
WRONG = {
    "a global": ("def f():\n    print(rate)", "uses rate from"),
    "a module": ("def f():\n    print(os.getcwd())", "uses os from"),
    "another function": ("def f():\n    helper()", "uses helper from"),
    "a class": ("def f():\n    Model()", "uses Model from"),
    "several": ("def f():\n    print(os.sep, loss)", "uses loss, os from"),
    "in a nested function": ("def f():\n    def g():\n        return os.getcwd()\n    g()", "uses os from"),
    "in a lambda": ("def f():\n    return (lambda: rate)()", "uses rate from"),
    "in a comprehension": ("def f():\n    return [rate for _ in range(2)]", "uses rate from"),
    "in a method": (
        "def f():\n    class C:\n        def g(self):\n            return os.sep\n    C().g()",
        "uses os from",
    ),
    "in the body of a class": ("def f():\n    class C:\n        loss = loss\n    C()", "uses loss from"),
    "as a base": ("def f():\n    class C(Model):\n        pass\n    C()", "uses Model from"),
    "as a decorator within": ("def f():\n    @timer\n    def g():\n        pass\n    g()", "uses timer from"),
    "as a default": ("def f(path=os.getcwd()):\n    pass", "uses os from"),
    "as a default of a nested function": ("def f():\n    def g(x=rate):\n        pass\n    g()", "uses rate from"),
    "as a default by keyword": ("def f(*, x=rate):\n    pass", "uses rate from"),
    "a global that it changes": ("def f():\n    global loss\n    loss += 1", "uses loss from"),
    "a global that it deletes": ("def f():\n    global loss\n    del loss", "uses loss from"),
    "a name that is defined nowhere": ("def f():\n    print(undefined)", "uses undefined from"),
    "what a notebook defines": ("def f():\n    display(1)", "uses display from"),
    "the file": ("def f():\n    print(__file__)", "uses __file__ from"),
    "a builtin that the script replaces": ("def f():\n    print(input)", "uses input from"),
    "a local of the function around": (
        "def make():\n    x = 1\n    def f():\n        print(x)\n    return f\nf = make()",
        "uses x from",
    ),
    "super of the class around": (
        "class C:\n    def f(a=1):\n        return super().f\nf = C.f",
        "uses __class__ from",
    ),
    "a decorator of the script": ("@timer\ndef f():\n    pass", "f is decorated with @timer, which is not sent"),
    "one decorator of two": (
        "@register\n@functools.lru_cache\ndef f():\n    return 1",
        "f is decorated with @register, @functools.lru_cache, which is not sent",
    ),
    "a decorator of generators": ("@contextlib.contextmanager\ndef f():\n    yield", "f is a generator"),
    "wrapped afterwards": ("def g():\n    pass\nf = timer(g)", "g is wrapped, which is not sent"),
    "wrapped without functools": ("@bare_wrapper\ndef f():\n    pass", "wrapper uses func from"),
    "a decorator and a global": ("@timer\ndef f():\n    print(rate)", "uses rate from"),
    "a generator": ("def f():\n    yield 1", "f is a generator"),
    "an asynchronous generator": ("async def f():\n    yield 1", "f is a generator"),
    "a global in async": ("async def f():\n    await asyncio.sleep(0)", "uses asyncio from"),
    "a lambda": ("f = lambda: None", "use a function that is defined with def"),
    "a partial": ("f = functools.partial(helper)", "use a function that is defined with def"),
    "a class itself": ("f = Model", "use a function that is defined with def"),
    "a built-in function": ("f = print", "use a function that is defined with def"),
    "no function": ("f = 1", "use a function that is defined with def"),
    "without a source": ("exec('def f(): pass')", "the source of f cannot be read"),
}

numbers = itertools.count()


def module(folder: Path, text: str) -> types.ModuleType:
    path = folder / f"script_{next(numbers)}.py"
    path.write_text(f"{TOP}\n\n{text}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("name", RIGHT)
def test_a_function_runs_alone(name: str, tmp_path: Path) -> None:
    program, *arguments = expanded(_program.command_of(module(tmp_path, RIGHT[name]).f))
    assert program == "python3"
    # The folder of the script is not that of the rank.
    ran = subprocess.run([sys.executable, "-I", "-W", "error", *arguments], cwd="/", capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "ran\n" or "'ran'" not in RIGHT[name]


@pytest.mark.parametrize("name", WRONG)
def test_a_function_that_cannot_run_alone_is_told(name: str, tmp_path: Path) -> None:
    text, message = WRONG[name]
    with pytest.raises(InvalidJobError) as caught:
        _program.command_of(module(tmp_path, text).f)
    assert [str(problem) for problem in caught.value.problems if message in str(problem)], caught.value


def test_a_notebook_replaces_open() -> None:
    def replaced() -> None: ...

    replaced.__module__ = "IPython.core.interactiveshell"
    assert _program.is_built_in("open", {"open": replaced}) and not _program.is_built_in("open", {"open": 1})


def test_a_module_that_is_no_package_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def deco(func): return func\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not _program.is_installed("mine")
    assert _program.is_installed("pydantic.fields") and _program.is_installed("os.path")
    assert _program.import_of("partial", __import__("functools").partial) == "from functools import partial as partial"


def expanded(command: list[str], **variables: str) -> list[str]:
    """Return a command as Kubernetes starts it, with variables of the container in place of $(NAME)."""
    reference = re.compile(r"\$(?:\$|\((\w+)\))")

    def value(found: re.Match[str]) -> str:
        return variables.get(found[1], found[0]) if found[1] else "$"

    return [reference.sub(value, word) for word in command]


def test_kubernetes_changes_nothing_in_a_function(tmp_path: Path) -> None:
    text = "def f(price):\n    print('$(HOME) $$ $', price)\n"
    command = _program.command_of(module(tmp_path, text).f, {"price": "5 $$ $(HOME)"})
    program, *arguments = expanded(command, HOME="/root")
    ran = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
    assert program == "python3" and ran.stdout == "$(HOME) $$ $ 5 $$ $(HOME)\n"
