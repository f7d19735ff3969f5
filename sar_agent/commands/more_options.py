"""Options that a wrapper adds to a command, for typer, which reads them from the signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints


def with_parameters(
    call: Callable[..., None],
    command: Callable[..., None],
    more: Iterable[tuple[str, Any, Any]],
    without: str = "",
) -> Callable[..., None]:
    """`call` with the parameters of `command` but `without`, and with `more` (name, default,
    annotation) before the last, which is --json."""
    hints = get_type_hints(command, include_extras=True)
    kept = [
        parameter.replace(
            annotation=hints.get(name, parameter.annotation), kind=inspect.Parameter.KEYWORD_ONLY
        )
        for name, parameter in inspect.signature(command).parameters.items()
        if name != without
    ]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, default, annotation in more
    ]
    parameters = [*kept[:-1], *added, kept[-1]]
    call.__dict__["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
