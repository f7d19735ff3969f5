"""The examples in docstrings of the graph library are run: they must print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from sar_agent.routing import graph

MODULES = sorted(
    f"{graph.__name__}.{module.name}" for module in pkgutil.iter_modules(graph.__path__)
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted, f"{name} has no example"
    assert not result.failed
