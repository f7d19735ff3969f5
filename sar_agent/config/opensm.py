"""The section [opensm]: the subnet manager that installs the routes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from sar_agent.config.types import ABSOLUTE, Absolute, Deadline, Section, Word


class OpensmConfig(Section, frozen=True):
    """The subnet manager: OpenSM with our plugin, OpenSM without it, or what a package brings."""

    method: Word = Field(
        default="plugin",
        description="how routes are installed. plugin: by the plugin of sar-agent in OpenSM; file: "
        "by OpenSM's own routing engine file, without the plugin (docs/file-method.md); packages "
        "add others (entry point group sar_agent.subnet_managers)",
    )
    plugin_socket: Absolute = Field(
        default=Path("/run/sar-agent/bridge.sock"), description="Unix socket of the plugin"
    )
    load_deadline_seconds: Deadline = Field(
        default=90.0,
        description="time for an install: for an answer of the plugin, more than the plugin's own "
        "deadline (60); with the method file, until the routes are read back",
    )
    poll_seconds: Annotated[float, Field(ge=0.05, le=3600)] = Field(
        default=0.5, description="interval at which OpenSM is asked whether something changed"
    )
    fabric_source: Literal["", "plugin", "ibnetdiscover"] = Field(
        default="",
        description="source of the fabric, unless fabric.file is set: plugin asks OpenSM, "
        'ibnetdiscover runs fabric.command, which requires umad. "" is ibnetdiscover in observe '
        "mode and with the method file, else plugin",
    )
    lfts_dump: str = Field(
        default="",
        description="file with the forwarding tables that are in force, OpenSM's opensm-lfts.dump "
        "or the output of dump_fts: read back by the method file, and in observe mode without the "
        "plugin; there also ibdiagnet2.fdbs, ibdiagnet2.far, or a folder with one of them",
    )
    lfts_file: str = Field(
        default="",
        description="method file: the file that sar-agent writes and OpenSM reads; lfts_file in "
        "opensm.conf has the same path",
    )
    pid_file: str = Field(
        default="",
        description="method file: file with the process number of OpenSM, which gets SIGHUP",
    )
    reload_command: list[Word] = Field(
        default=[],
        description="method file: command that has OpenSM sweep, instead of the signal, such as "
        '["systemctl", "kill", "--signal=HUP", "opensm@0x0002c90300000001"]',
    )
    read_back_command: list[Word] = Field(
        default=[],
        description="method file: command that asks the switches for their tables, instead of "
        'OpenSM\'s lfts_dump: ["dump_fts"], which requires umad',
    )
    head_of_queue_lifetime: int = Field(
        default=18,
        ge=0,
        le=31,
        description="method file: the larger of head_of_queue_lifetime and "
        "leaf_head_of_queue_lifetime in opensm.conf; 18 (0x12) is OpenSM's default, 1.1 s",
    )

    @field_validator("lfts_dump", "lfts_file", "pid_file")
    @classmethod
    def _absolute_path(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError(ABSOLUTE)
        return value

    @model_validator(mode="after")
    def _file_is_complete(self) -> OpensmConfig:
        if self.method != "file":
            return self
        if not self.lfts_file:
            raise ValueError('method = "file" needs lfts_file; set it here and in opensm.conf')
        if not (self.pid_file or self.reload_command):
            raise ValueError('method = "file" needs pid_file or reload_command; set one of them')
        if not (self.lfts_dump or self.read_back_command):
            raise ValueError(
                'method = "file" needs lfts_dump or read_back_command; set one of them'
            )
        if self.fabric_source == "plugin":
            raise ValueError('with method = "file" there is no plugin; set fabric_source = ""')
        return self
