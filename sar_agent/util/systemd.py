"""systemd's `Type=notify`: ready, what goes on, and that we are alive. Silent elsewhere."""

from __future__ import annotations

import sdnotify


class Notifier:
    """Speaks to systemd where it started us (`NOTIFY_SOCKET`)."""

    def __init__(self) -> None:
        self._systemd = sdnotify.SystemdNotifier()

    def ready(self) -> None:
        """Once, when the first pass can begin."""
        self._systemd.notify("READY=1")

    def alive(self, status: str = "") -> None:
        """Feeds the watchdog; `status` is what `systemctl status` shows."""
        self._systemd.notify("WATCHDOG=1" + (f"\nSTATUS={status}" if status else ""))

    def stopping(self) -> None:
        """Before the end."""
        self._systemd.notify("STOPPING=1")
