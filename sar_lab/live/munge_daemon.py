"""munged, with which Slurm's daemons authenticate each other."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from sar_agent.errors import SarError
from sar_lab.live.process import Daemon, require, wait_until


class MungeDaemon:
    """A separate munged with its own key and socket; it needs no root, and no other program depends
    on it or stops it. `socket` is the value for `AuthInfo=socket=` of slurm.conf.
    """

    def __init__(self) -> None:
        self.socket = Path()
        self._stack = ExitStack()

    def __enter__(self) -> MungeDaemon:
        require("munge", "munged", "munge")
        with self._stack as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sar-munge-")))
            folder.chmod(0o711)  # munged requires a folder that all users may enter
            key = folder / "key"
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(128))
            self.socket = folder / "socket"
            munged = stack.enter_context(
                Daemon(
                    [
                        "munged",
                        "--foreground",
                        "--force",  # or it refuses a TMPDIR that only its owner may enter
                        "--num-threads=10",  # the default fails at srun -N256
                        f"--socket={self.socket}",
                        f"--key-file={key}",
                        f"--pid-file={folder / 'pid'}",
                        f"--log-file={folder / 'log'}",
                        f"--seed-file={folder / 'seed'}",
                    ],
                    folder / "output",
                )
            )
            if not wait_until(lambda: self._answers() or not munged.alive(), 10):
                raise SarError(f"munged does not answer: {munged.tail()}")
            munged.check()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _answers(self) -> bool:
        if not self.socket.exists():
            return False
        asked = ["munge", "--no-input", f"--socket={self.socket}"]
        return subprocess.run(asked, capture_output=True, env=os.environ).returncode == 0
