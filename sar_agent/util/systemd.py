"""Notifies systemd (`Type=notify`) of readiness, status and life; does nothing elsewhere."""

from __future__ import annotations

import sdnotify


class Notifier:
    """Notifies systemd where it started this process (`NOTIFY_SOCKET` is set)."""

    def __init__(self) -> None:
        self._systemd = sdnotify.SystemdNotifier()

    def ready(self) -> None:
        """To be called once, when the first pass can begin."""
        self._systemd.notify("READY=1")

    def alive(self, status: str = "") -> None:
        """Feeds the watchdog; `status` is what `systemctl status` shows."""
        self._systemd.notify("WATCHDOG=1" + (f"\nSTATUS={status}" if status else ""))

    def stopping(self) -> None:
        """To be called before the process ends."""
        self._systemd.notify("STOPPING=1")
