"""Files are the agent's and readable for it, whoever wrote them and whatever the umask."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent import rights
from sar_agent.agent import state as state_module
from sar_agent.agent.decide import Reason
from sar_agent.agent.history import History
from sar_agent.agent.outcome import Result
from sar_agent.agent.state import SavedHold, StateStore
from sar_agent.agent.status import read_agent_status
from sar_agent.errors import InputError, SarError
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import write_routes_file
from sar_agent.install.generations import Generations
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.util.lock_file import Lock
from sar_agent.util.owned_files import make_folder
from sar_agent.util.text_files import remove_leftovers, write_text
from tests.worlds.agent_world import JOBS, ROW, STATE, World
from tests.worlds.command_line import sar_agent

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def as_nobody(act: Callable[[], object]) -> str:
    """What `act` gives in a process of that user, as text."""
    names = pwd.getpwuid(NOBODY).pw_name, grp.getgrgid(NOBODY).gr_name  # imported before it is one
    assert all(names)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = repr(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def theirs() -> Iterator[Path]:
    """The service's state folder; others may walk the way to it (pytest's own is 0700)."""
    with tempfile.TemporaryDirectory(prefix="sar-rights-") as above:
        Path(above).chmod(0o755)
        folder = Path(above) / "state"
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        folder.chmod(0o750)
        yield folder


def world_file(folder: Path) -> Path:
    """A routes file."""
    folder.mkdir()
    world = World(folder)
    routes = load_engine("minhop").route(world.fabric, JobMix.of([]), Options())
    write_routes_file(folder / "routes.sar", routes_to_file(world.fabric, routes, 7))
    return folder / "routes.sar"


@as_root
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_files_that_root_writes_are_usable_by_the_agent(
    theirs: Path, tmp_path: Path, mask: int
) -> None:
    hold = SavedHold()
    routes = world_file(tmp_path / "world")
    with umask(mask):
        StateStore(theirs).save(STATE.model_copy(update={"hold": hold}))
        History(theirs).add(ROW)
        Generations(theirs).add(7, routes.read_bytes())
        with Lock(theirs, "pass.lock"):
            pass
    for path in theirs.rglob("*"):
        if path.suffix != ".sar":  # public, like the file that OpenSM reads
            found = path.stat()
            mode = 0o750 if path.is_dir() else 0o640
            assert (found.st_uid, found.st_gid) == (NOBODY, NOBODY), path
            assert stat.S_IMODE(found.st_mode) == mode, path

    def agent() -> object:
        state = StateStore(theirs).load()
        assert state and state.hold
        with Lock(theirs, "pass.lock", patience=0.0):
            History(theirs).add(ROW)
        return len(History(theirs).last(9)), Generations(theirs).read(7).generation

    assert as_nobody(agent) == "(2, 7)"


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    for mask in (0o000, 0o077):
        folder = tmp_path / oct(mask)
        with umask(mask):
            make_folder(folder / "state")
            StateStore(folder / "state").save(STATE)
            History(folder / "state").add(ROW)
            with Lock(folder / "state", "agent.lock"):
                pass
            write_text(folder / "asked for", "a person's file\n")
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
        assert found == {
            "state": 0o750,
            "state.json": 0o640,
            "history.sqlite": 0o640,
            "agent.lock": 0o640,
            "asked for": 0o666 & ~mask,
        }


@as_root
def test_root_follows_no_link_in_a_folder_of_another_s(theirs: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("root's\n")
    victim.chmod(0o600)
    for name in ("state.json", "history.sqlite", "pass.lock"):
        (theirs / name).symlink_to(victim)
    StateStore(theirs).save(STATE)
    with pytest.raises(SarError, match=r"history\.sqlite"):
        History(theirs).add(ROW)
    with Lock(theirs, "pass.lock"):
        pass
    assert victim.read_text() == "root's\n"
    assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode)) == (0, 0o600)


@as_root
def test_a_state_that_cannot_be_read_is_an_error_with_its_remedy(theirs: Path) -> None:
    StateStore(theirs).save(STATE)
    os.chown(theirs / "state.json", 0, 0)
    (theirs / "state.json").chmod(0o600)
    said = as_nobody(lambda: StateStore(theirs).load())
    assert said.startswith(f"InputError: {theirs}/state.json: cannot be read (Permission denied)")
    assert said.endswith(f"chown nobody:nogroup {theirs}/state.json")


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def begin() -> None:
        real = Path.read_bytes

        def read_bytes(path: Path) -> bytes:
            if path.name == "state.json":
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        monkeypatch.setattr(state_module.Path, "read_bytes", read_bytes)

    return begin


def test_routes_stay_while_the_state_is_unreadable(
    tmp_path: Path, unreadable: Callable[[], None]
) -> None:
    world = World(tmp_path)
    world.once()
    unreadable()
    world.source.records = JOBS[:1]
    report = world.once()
    assert report.result is Result.FAILED and "chown" in report.sentence
    assert world.bridge.loads == [1], "its routes may be held"
    found = read_agent_status(world.agent.config)
    assert found.wanted is None and "cannot be read" in found.words()
    world.bridge.fall_back()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FIRST), "none is held now"


@as_root
@pytest.mark.parametrize("words", [["once"], ["run"], ["rollback", "--to", "1"]])
def test_commands_that_write_refuse_another_s_folder(
    theirs: Path, tmp_path: Path, words: list[str]
) -> None:
    config = tmp_path / "sar-agent.toml"
    config.write_text(
        f'[agent]\nmode = "install"\nstate_dir = "{theirs}"\nrun_dir = "{tmp_path}"\n'
    )
    done = sar_agent(*words, "--config", config)
    assert done.returncode == 2
    assert done.stderr == (
        f"sar-agent: {theirs}: belongs to nobody, and so must all that `sar-agent {words[0]}` "
        f"writes there; run it as that user: sudo -u nobody sar-agent {words[0]}\n"
    )
    assert not list(theirs.iterdir())


@as_root
def test_warm_up_refuses_another_s_cache(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(theirs))
    done = sar_agent("warm-up")
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"run it as that user: sudo -u nobody NUMBA_CACHE_DIR={theirs} sar-agent warm-up\n"
    )


def test_warm_up_without_settings_has_the_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from sar_agent.agent import rehearsal
    from sar_agent.commands import service

    asked: list[Any] = []

    def rehearse(config: Any) -> rehearsal.Rehearsal:
        asked.append(config)
        return rehearsal.Rehearsal(0, 0.0)

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    monkeypatch.setattr(service, "CONFIG_PATH", tmp_path / "none.toml")
    done = sar_agent("warm-up", "--config", tmp_path / "none.toml")
    assert (done.returncode, asked[0].agent.engine) == (0, "sar-plus"), done.stderr
    done = sar_agent("warm-up", "--config", tmp_path / "other.toml")
    assert done.returncode == 2 and "cannot be read" in done.stderr


def test_a_usual_folder_that_is_not_there_is_not_made_by_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sar-agent"
    rights.require_owner(folder, "once")
    monkeypatch.setattr(rights, "_USUAL", folder)
    monkeypatch.setattr(rights, "_is_user", lambda name: True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(InputError, match=r"install -d -o sar-agent .*; then sudo -u sar-agent "):
        rights.require_owner(folder, "once")


def test_a_name_is_on_the_disk_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced after the rename, or a power cut brings the old file back."""
    order: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        what = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        order.append(what)
        real_sync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        order.append("rename")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    write_text(tmp_path / "a", "text")
    assert order == ["file", "rename", "folder"]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    kill = "import os, sys; os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
    write = "from pathlib import Path; from sar_agent.util.text_files import write_text\n"
    line = f"{kill}{write}write_text(Path(sys.argv[1]), 'half')"
    subprocess.run([sys.executable, "-c", line, tmp_path / "state.json"])
    [left] = tmp_path.iterdir()
    remove_leftovers(tmp_path)
    assert left.exists(), "somebody may be writing it"
    os.utime(left, (0, 0))
    others = [tmp_path / f".state.json.{os.getpid()}.01234567", tmp_path / ".profile"]
    for path in others:
        path.touch()
        os.utime(path, (0, 0))
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(others)
    remove_leftovers(tmp_path / "no such folder")
