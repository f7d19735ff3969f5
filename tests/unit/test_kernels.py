"""The decorators of kernels: what Python may call, and what only kernels call."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import sar_agent
import sar_lab

KERNELS = """
from sar_agent.util.kernels import kernel, kernel_part

@kernel_part
def twice(x):
    return 2 * x

@kernel
def four_times(x):
    return twice(twice(x))

@kernel
def again(x):
    return twice(x)
"""
CALLS = """
import kernels
for _ in range(2):
    try:
        kernels.twice(1)
    except TypeError as error:
        print(error)
    print(kernels.four_times(10), kernels.again(21))
print([sum(each.stats.cache_hits.values()) for each in (kernels.four_times, kernels.again)])
"""


def test_python_cannot_call_a_part_compiled_or_not(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    refused = "kernels.twice is for kernels, not for Python\n"
    for hits in ("[0, 0]", "[1, 1]"):
        done = subprocess.run(
            [sys.executable, "-c", CALLS],
            env=os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.stdout == 2 * f"{refused}40 42\n" + f"{hits}\n", done.stderr


def test_no_function_of_python_names_a_part() -> None:
    named = [
        f"{module.__name__}:{node.lineno}: {node.id}"
        for module in modules()
        for statement in ast.parse(Path(str(module.__file__)).read_text()).body
        if not is_kernel(vars(module).get(getattr(statement, "name", "")))
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and is_part(vars(module).get(node.id))
    ]
    assert not named


def test_every_part_is_called_by_a_kernel() -> None:
    parts = {value for module in modules() for value in vars(module).values() if is_part(value)}
    called = {
        value
        for module in modules()
        for kernel in vars(module).values()
        if is_kernel(kernel)
        for name in kernel.py_func.__code__.co_names
        if is_part(value := vars(module).get(name))
    }
    assert len(parts) > 50 and parts == called


def modules() -> Iterator[ModuleType]:
    for package in (sar_agent, sar_lab):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def is_kernel(value: object) -> bool:
    return bool(getattr(value, "targetoptions", {}).get("no_cfunc_wrapper"))


def is_part(value: object) -> bool:
    return bool(getattr(value, "targetoptions", {}).get("no_cpython_wrapper"))
