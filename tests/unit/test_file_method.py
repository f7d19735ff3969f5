"""OpenSM without the plugin: `lfts_file` written, a sweep requested, tables read back.

OpenSM is a command here that copies `lfts_file` to the dump; tests/live/test_file_method.py has the
real one.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.config.model import Config, ConfigError, parse_config
from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.export import export_routes
from sar_agent.formats.guid_tables import DumpUnfinished
from sar_agent.formats.lfts_dump import parse_tables
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.subnet_manager import NotYet, SmRefused, load_subnet_manager
from sar_agent.jobs import JobMix
from sar_agent.opensm import file_manager
from sar_agent.opensm.file_lfts import read_lfts_file
from sar_agent.opensm.file_manager import FileManager
from sar_agent.routing import Options, load_engine
from tests.worlds.table_texts import as_old_dump_fts, big_switch


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return load_fabric("xgft:2;3,3;1,2")


def plan(fabric: Fabric, engine: str = "updn", generation: int = 1) -> Plan:
    routes = load_engine(engine).route(fabric, JobMix.of([]), Options())
    return make_plan(generation, fabric, JobMix.of([]), routes)


class FakeSweep:
    """Files of an OpenSM that copies `lfts` to `dump` when it is told to; `ignores`: it writes its
    dump again instead."""

    def __init__(self, folder: Path, fabric: Fabric) -> None:
        self.folder, self.lfts, self.dump = folder, folder / "lfts.dump", folder / "seen.dump"
        self.script = folder / "reload"
        routes = load_engine("minhop").route(fabric, JobMix.of([]), Options())
        (folder / "first").mkdir()
        export_routes(folder / "first", fabric, routes, ["lfts"])
        self.dump.write_bytes((folder / "first" / "lfts.dump").read_bytes())
        self.obeys()

    def obeys(self) -> None:
        self._says(f"cp {self.lfts} {self.dump}.new && mv {self.dump}.new {self.dump}")

    def ignores(self) -> None:
        self._says(f"cp {self.dump} {self.dump}.new && mv {self.dump}.new {self.dump}")

    def fails(self) -> None:
        self._says("echo no such unit >&2; exit 5")

    def _says(self, line: str) -> None:
        self.script.write_text(f"#!/bin/sh\n{line}\n")
        self.script.chmod(0o755)

    def manager(self, **keys: object) -> FileManager:
        sections = {
            "agent": {"state_dir": str(self.folder), "run_dir": str(self.folder)},
            "opensm": {
                "method": "file",
                "lfts_file": str(self.lfts),
                "reload_command": [str(self.script)],
                "lfts_dump": str(self.dump),
                "load_deadline_seconds": 5,
            }
            | keys,
        }
        made = load_subnet_manager(Config.model_validate(sections, strict=False))
        assert isinstance(made, FileManager)
        return made


@pytest.fixture
def sweep(tmp_path: Path, fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSweep]:
    monkeypatch.setattr(file_manager, "ANOTHER_SWEEP_SECONDS", 0.2)
    yield FakeSweep(tmp_path, fabric)


def test_a_plan_is_in_force_when_it_was_read_back(sweep: FakeSweep, fabric: Fabric) -> None:
    manager = sweep.manager()
    assert not manager.status().ours
    before = manager.routes_in_force(fabric)
    made = plan(fabric, "ftree", 7)
    found = manager.install(made, before.digest)
    assert np.array_equal(found.routes.egress, made.routes.egress)
    status = manager.status()
    assert status.ours and status.generation == 7 and status.identity == found.identity
    again = sweep.manager().status()
    assert again.identity == status.identity, "after a restart, too"
    assert not manager.swap.pending and manager.recover() == ""
    manager.confirm_restart(7, compare=True)


def test_a_dump_without_the_ports_above_127(tmp_path: Path) -> None:
    """As dump_fts before rdma-core 63 prints it: nothing is installed on such a reading."""
    fabric = big_switch()
    sweep = FakeSweep(tmp_path, fabric)
    manager = sweep.manager()
    manager.install(plan(fabric, "minhop"), None)
    sweep.dump.write_text(as_old_dump_fts(sweep.dump.read_text()))
    other = plan(fabric, "updn", 2)
    for act in (lambda: manager.routes_in_force(fabric), lambda: manager.install(other, None)):
        with pytest.raises(InputError) as caught:
            act()
        assert "has no port above 127, where it has 1 cable" in str(caught.value)
        assert str(caught.value).endswith("a later dump_fts, or ibroute")
    status = manager.status()
    assert not status.ours
    assert status.last_error.startswith(f"{sweep.dump} has no port above 127: dump_fts before")
    assert read_lfts_file(sweep.lfts).generation == 1  # type: ignore[union-attr]


def test_a_file_that_is_ignored_is_taken_back(sweep: FakeSweep, fabric: Fabric) -> None:
    manager = sweep.manager()
    manager.install(plan(fabric, "updn", 1), None)
    old = sweep.lfts.read_bytes()
    sweep.ignores()
    other = plan(fabric, "dmodk", 2)
    begin = time.monotonic()
    with pytest.raises(SmRefused, match="OpenSM has not loaded it: it needs routing_engine file"):
        manager.install(other, None)
    assert time.monotonic() - begin < 5, "two sweeps tell it, not the deadline"
    assert sweep.lfts.read_bytes() == old and not manager.swap.pending
    assert manager.status().generation == 1


def test_a_command_that_fails_leaves_the_old_file(sweep: FakeSweep, fabric: Fabric) -> None:
    sweep.fails()
    with pytest.raises(Unavailable, match="failed with exit code 5: no such unit"):
        sweep.manager().install(plan(fabric), None)
    assert not sweep.lfts.exists()


def test_other_tables_than_the_proof_began_with_are_refused(
    sweep: FakeSweep, fabric: Fabric
) -> None:
    with pytest.raises(SmRefused, match="other tables are in force") as refused:
        sweep.manager().install(plan(fabric), "0" * 64)
    assert refused.value.changed and not sweep.lfts.exists()


def test_two_lanes_are_refused(sweep: FakeSweep, fabric: Fabric) -> None:
    made = plan(fabric)
    made = replace(made, routes=replace(made.routes, virtual_lanes=2))
    with pytest.raises(SmRefused, match=r'virtual lanes, and opensm.method = "file" installs one'):
        sweep.manager().install(made, None)
    assert not sweep.lfts.exists()


@pytest.mark.parametrize("edited", [False, True])
def test_a_file_of_somebody_else_stays(sweep: FakeSweep, fabric: Fabric, edited: bool) -> None:
    manager = sweep.manager()
    if edited:
        manager.install(plan(fabric), None)
        sweep.lfts.write_bytes(sweep.lfts.read_bytes() + b"# mine\n")
    else:
        sweep.lfts.write_text("# by hand\n")
    text = sweep.lfts.read_bytes()
    what = "was edited after" if edited else "was not written by"
    with pytest.raises(InputError, match=what):
        manager.install(plan(fabric, "dmodk", 2), None)
    assert what in manager.status().last_error and not manager.status().ours
    assert sweep.lfts.read_bytes() == text


def test_an_install_that_was_cut_short_is_finished_or_undone(
    sweep: FakeSweep, fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = sweep.manager()
    manager.install(plan(fabric, "updn", 1), None)
    old = sweep.lfts.read_bytes()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    for arrives in (False, True):
        monkeypatch.setattr(manager, "_wait", dies)
        (sweep.obeys if arrives else sweep.ignores)()
        with pytest.raises(KeyboardInterrupt):
            manager.install(plan(fabric, "dmodk", 2), None)
        assert manager.status().install_pending
        again = sweep.manager()
        said = again.recover()
        assert ("generation 2 is in force" in said) is arrives
        assert (sweep.lfts.read_bytes() == old) is not arrives
        assert not again.status().install_pending and again.status().ours


def test_a_dump_that_is_being_written_is_waited_for(sweep: FakeSweep, fabric: Fabric) -> None:
    manager, whole = sweep.manager(), sweep.dump.read_bytes()
    cut = whole[: len(whole) // 2]
    sweep.dump.write_bytes(cut)
    with pytest.raises(NotYet, match="a dump is whole only when every switch ends"):
        manager.reader.read(patience=0.3)
    writer = subprocess.Popen(
        ["sh", "-c", f"sleep 0.5; cp {sweep.folder}/first/lfts.dump {sweep.dump}"]
    )
    assert manager.reader.read(patience=30).tables.on(fabric, "x").egress.shape[0] == 1
    writer.wait()
    few = whole[: whole.rfind(b"Unicast")]
    sweep.dump.write_bytes(few)
    with pytest.raises(NotYet, match="no table of switch"):
        manager.routes_in_force(fabric)


def test_only_an_opensm_is_signalled(sweep: FakeSweep, fabric: Fabric) -> None:
    pid_file = sweep.folder / "pid"
    manager = sweep.manager(reload_command=[], pid_file=str(pid_file))
    for text, said in (("", "holds no process number"), (f"{os.getpid()}\n", "is not signalled")):
        pid_file.write_text(text)
        with pytest.raises(Unavailable, match=said):
            manager.install(plan(fabric), None)
    pid_file.unlink()
    with pytest.raises(Unavailable, match="OpenSM is not running"):
        manager.status()


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (b"0x0001 001 : portguid 0x1:\n", 1, "before the first switch"),
        (b"Unicast lids [0-1] of switch Lid 1 guid 0x1 (a):\njunk\n", 2, "not a line"),
        (b"Unicast lids [0-1] of switch Lid 1 guid 0x1 (a):\n", 1, "middle of a switch"),
        (b"Unicast lids of switch guid 0x1 (a):\n0xffff 1\n", 2, "out of range"),
        (b"Unicast lids of switch guid 0x1 (a):\n0x1 256\n", 2, "port 256 of LID 1 is above 255"),
        (
            b"Unicast lids of switch guid 0x1 (a):\n3 valid lids dumped\n",
            2,
            "3 LIDs announced, 0 read",
        ),
        (b"Unicast lids of switch (a):\n", 1, "without its guid"),
        (b"\n", 1, "no switch"),
        (b"", 1, "no switch"),
    ],
)
def test_broken_dumps_are_refused_with_their_line(text: bytes, line: int, what: str) -> None:
    with pytest.raises(DumpUnfinished, match=what) as error:
        parse_tables(text, "dump")
    assert error.value.line == line


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ("", "needs lfts_file"),
        ('lfts_file = "/l"', "needs pid_file or reload_command"),
        ('lfts_file = "/l"\npid_file = "/p"', "needs lfts_dump or read_back_command"),
        ('lfts_file = "l"', "give an absolute path"),
        (
            'lfts_file = "/l"\npid_file = "/p"\nlfts_dump = "/d"\nfabric_source = "plugin"',
            "there is no plugin",
        ),
    ],
)
def test_the_settings_must_be_complete(keys: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        parse_config(f'[opensm]\nmethod = "file"\n{keys}\n')
