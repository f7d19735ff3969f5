"""Runs the pieces of a replay in this process, on all cores or on a Dask cluster, with equal
results."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING

from sar_agent.errors import InputError, Unavailable
from sar_lab.replay.chain import StateRow
from sar_lab.replay.replay_plan import ReplayPiece, ReplayPlan, do_piece, unpacked

if TYPE_CHECKING:
    from distributed import Client

PieceResults = Iterator[tuple[ReplayPiece, list[StateRow]]]
Pool = Callable[[ReplayPlan, Sequence[ReplayPiece]], PieceResults]
AHEAD = 4
"""Queued pieces for each worker: enough to keep it busy, few enough to stop soon."""
AGAIN = "the same command continues where this one ended"


def here(work: ReplayPlan, pieces: Sequence[ReplayPiece]) -> PieceResults:
    """Runs the pieces one after the other in this process."""
    for piece in pieces:
        yield piece, do_piece(work, piece)


def on_cores(workers: int) -> Pool:
    """A pool of `workers` processes on this machine."""

    def run(work: ReplayPlan, pieces: Sequence[ReplayPiece]) -> PieceResults:
        # Processes are spawned, not forked: numba and pyarrow already have threads.
        with (
            workers_alive(),
            ProcessPoolExecutor(
                workers, get_context("spawn"), _take_up, (work.packed(),)
            ) as processes,
        ):
            todo = iter(pieces)
            waiting: dict[Future[list[StateRow]], ReplayPiece] = {}
            for piece in todo:
                waiting[processes.submit(_do, piece)] = piece
                if len(waiting) < workers * AHEAD:
                    continue
                yield from _some_of(waiting)
            while waiting:
                yield from _some_of(waiting)

    return run


def _some_of(waiting: dict[Future[list[StateRow]], ReplayPiece]) -> PieceResults:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()


@contextmanager
def workers_alive() -> Iterator[None]:
    """Raises `Unavailable` where a process of a pool that is used inside has died."""
    try:
        yield
    except BrokenProcessPool as error:
        raise Unavailable(f"a worker process died, perhaps for lack of memory; {AGAIN}") from error


_work: ReplayPlan | None = None


def _take_up(data: bytes) -> None:
    """Initialises a worker process, which ends when its parent ends."""
    global _work
    _work = unpacked(data)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)


def _do(piece: ReplayPiece) -> list[StateRow]:
    assert _work
    return do_piece(_work, piece)


def on_dask(client: Client) -> Pool:
    """A pool of the workers of a Dask cluster. They need the same sar-lab, but no shared folder."""

    def run(work: ReplayPlan, pieces: Sequence[ReplayPiece]) -> PieceResults:
        from distributed import KilledWorker, as_completed

        if not pieces:
            return
        client.wait_for_workers(1)  # Slurm may queue the first worker
        data = client.scatter(work.packed(), broadcast=True, hash=False)
        futures = [client.submit(_do_packed, data, piece, pure=False) for piece in pieces]
        of = {future.key: piece for future, piece in zip(futures, pieces, strict=True)}
        for future in as_completed(futures):
            try:
                yield of[future.key], future.result()
            except KilledWorker as error:
                raise Unavailable(f"Dask's workers died ({error}); {AGAIN}") from error
            future.release()

    return run


_unpacked: tuple[bytes, ReplayPlan] | None = None
_one_at_a_time = threading.Lock()
"""A worker may have several threads, but the cached properties of a fabric are not thread-safe."""


def _do_packed(data: bytes, piece: ReplayPiece) -> list[StateRow]:
    global _unpacked
    with _one_at_a_time:
        if _unpacked is None or _unpacked[0] is not data:
            _unpacked = data, unpacked(data)
        return do_piece(_unpacked[1], piece)


def dask_client(address: str) -> AbstractContextManager[Client]:
    """`tcp://host:port` of a scheduler, or `slurm:N`: N Slurm jobs as described by
    `jobqueue.yaml`, which end with this process. Raises `InputError` or `Unavailable`."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("Dask is not installed", remedy="pip install 'sar-lab[replay]'") from error
    if address.startswith("slurm:"):
        return _slurm_client(address)
    try:
        client = Client(address, timeout="15s")
    except (OSError, ValueError) as error:
        raise Unavailable(f"no Dask scheduler answers at {address} ({error})") from error
    if not client.scheduler_info()["workers"]:
        client.close()
        raise Unavailable(
            f"the Dask scheduler at {address} has no worker; start one with dask worker"
        )
    return client


@contextmanager
def _slurm_client(address: str) -> Iterator[Client]:
    from dask_jobqueue.slurm import SLURMCluster
    from distributed import Client

    number = address.removeprefix("slurm:")
    if not number.isdecimal() or int(number) < 1:
        raise InputError(
            f"--dask {address!r} does not give a number of jobs", remedy="e.g. slurm:4"
        )
    try:
        cluster = SLURMCluster()
    except (ValueError, TypeError) as error:
        raise InputError(
            f"Dask cannot start Slurm jobs ({error})",
            remedy="set cores and memory in ~/.config/dask/jobqueue.yaml "
            "(sar_lab/research/pages/replay.md)",
        ) from error
    with cluster:
        cluster.scale(jobs=int(number))
        with Client(cluster) as client:
            yield client


def pool_for(workers: int | None, client: Client | None = None) -> Pool:
    """The pool for the options of a command; by default all cores."""
    if client is not None:
        return on_dask(client)
    workers = workers or len(os.sched_getaffinity(0))
    return here if workers == 1 else on_cores(workers)
