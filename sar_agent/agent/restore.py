"""After a reboot of the only subnet manager's host: OpenSM begins with the routes that it had.

The plugin's folder is on a memory file system, so a reboot empties it, while switches keep their
tables. The newest kept generation is on disk; it was kept when all switches had confirmed it.

**Weak spot:** a repair by the plugin that has not become a generation yet (`reoptimise_seconds`) is
not on disk. OpenSM then repairs the generation again, which may choose other ways around.
"""

from __future__ import annotations

from contextlib import suppress

from sar_agent.config.model import Config
from sar_agent.errors import InputError, Unavailable
from sar_agent.formats.routes_file import read_generation
from sar_agent.install.generations import Generations
from sar_agent.util.owned_files import READABLE
from sar_agent.util.text_files import write_bytes


def restore_routes(config: Config) -> str:
    """Write the newest kept generation to `routes.sar` where there is none; returns what was done,
    in a sentence. Raises `Unavailable` where there is nothing to restore, and `InputError` where
    the disk does not take it."""
    path = config.agent.routes_path
    with suppress(InputError):  # none, or a broken one
        return f"OpenSM begins with generation {read_generation(path)}, which is in {path}"
    if config.agent.mode != "install":
        raise Unavailable("mode is observe: OpenSM begins with its own engines")
    kept = Generations(config.agent.state_dir)
    broken = []
    for number in reversed(kept.numbers()):
        try:
            kept.read(number)
        except InputError as error:
            broken.append(str(error))
            continue
        write_bytes(path, kept.path(number).read_bytes(), READABLE)
        words = f"OpenSM begins with generation {number}, which was kept on disk"
        return "; ".join([words, *broken])
    raise Unavailable(
        "; ".join(["no generation is kept: OpenSM begins with its own engines", *broken])
    )
