"""A small all-to-all for rehearsals: real MPI where `mpirun` started it, else sockets where `srun`
did. It prints what OSU's benchmarks print. Over loopback its times mean nothing.
"""

import os
import socket
import threading
import time

SIZES, TIMES = (1024, 65536), 10


def by_mpi() -> tuple[int, int, list[float]]:
    """(rank, number of ranks, mean seconds of an exchange for each size)."""
    from mpi4py import MPI  # type: ignore[import-not-found]

    world = MPI.COMM_WORLD
    spent = []
    for size in SIZES:
        out, back = bytearray(size * world.size), bytearray(size * world.size)
        world.Barrier()
        began = time.perf_counter()
        for _ in range(TIMES):
            world.Alltoall([out, MPI.BYTE], [back, MPI.BYTE])
        spent.append((time.perf_counter() - began) / TIMES)
    return world.rank, world.size, spent


def by_sockets() -> tuple[int, int, list[float]]:
    """The same: each rank listens at a port of its own, which follows from the job's number."""
    first_port = 40000 + int(os.environ["SLURM_JOB_ID"]) % 100 * 64
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    server = socket.create_server(("127.0.0.1", first_port + rank), backlog=size)
    peers = {}
    for other in range(rank):  # the lower rank listens
        end = time.monotonic() + 30
        while True:
            try:
                peers[other] = socket.create_connection(("127.0.0.1", first_port + other), 30)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        peers[other].sendall(rank.to_bytes(4, "big"))
    while len(peers) < size - 1:
        peer, _ = server.accept()
        peers[int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")] = peer
    spent = []
    for length in SIZES:
        began = time.perf_counter()
        for _ in range(TIMES):
            senders = [
                threading.Thread(target=peer.sendall, args=(bytes(length),))
                for peer in peers.values()
            ]
            for sender in senders:
                sender.start()
            for peer in peers.values():
                peer.recv(length, socket.MSG_WAITALL)
            for sender in senders:
                sender.join()
        spent.append((time.perf_counter() - began) / TIMES)
    return rank, size, spent


if __name__ == "__main__":
    mpi = "OMPI_COMM_WORLD_SIZE" in os.environ
    rank, size, spent = by_mpi() if mpi else by_sockets()
    if rank == 0:
        print(f"# all-to-all of {size} ranks by {'MPI' if mpi else 'sockets'}")
        print("# Size       Avg Latency(us)")
        for length, seconds in zip(SIZES, spent, strict=True):
            print(f"{length:<12d} {seconds * 1e6:.2f}")
