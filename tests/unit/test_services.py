"""Services are found by entry points: what is absent is silent, what is broken is named."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from sar_agent.config import services as registry
from sar_agent.config.services import GROUP, Service, load_hook, services
from sar_agent.errors import InputError

FOUND = registry.extensions(GROUP)


def with_points(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> dict[str, Service]:
    """What is found where exactly these (name, value) are installed."""
    found = EntryPoints(EntryPoint(name, value, GROUP) for name, value in points)
    monkeypatch.setattr(registry, "extensions", lambda group: tuple(found))
    return services.__wrapped__()


def make(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str) -> None:
    """A package `name` whose only file is `text`."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_they_act_in_the_order_that_each_states() -> None:
    assert list(services()) == ["baseline", "cables", "job_days", "page", "ages"]


@pytest.mark.parametrize("point", FOUND, ids=lambda point: point.name)
def test_every_hook_of_each_can_be_loaded(point: EntryPoint) -> None:
    service = services()[point.name]
    hooks = [hook for hook in (service.observer, service.quiet, service.check) if hook]
    assert hooks
    for hook in hooks:
        assert hook.startswith(f"{point.module}."), "all that is its own is in its folder"
        assert callable(load_hook(point.name, hook))


def test_one_whose_folder_is_absent_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ("gone", "sar_agent.services.gone:SERVICE"), ("far", "no_such_package.part:SERVICE")
    assert with_points(monkeypatch, *gone) == {}


def test_one_that_cannot_be_imported_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(monkeypatch, tmp_path, "lacking_service", "import no_such_module\n")
    with pytest.raises(InputError, match=r"service 'lacks'.*no_such_module"):
        with_points(monkeypatch, ("lacks", "lacking_service:SERVICE"))


def test_a_broken_package_around_one_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(monkeypatch, tmp_path, "broken_around", "1 / 0\n")
    with pytest.raises(InputError, match=r"service 'inner'.*ZeroDivisionError"):
        with_points(monkeypatch, ("inner", "broken_around.inner:SERVICE"))


def test_two_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="both have a service 'page'"):
        with_points(monkeypatch, *[("page", "sar_agent.services.live_page:SERVICE")] * 2)


def test_a_hook_that_cannot_be_loaded_names_its_service() -> None:
    with pytest.raises(InputError, match="service 'page' cannot be loaded"):
        load_hook("page", "sar_agent.services.live_page.no_such_file:Feed")
