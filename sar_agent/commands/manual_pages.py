"""Man pages and shell completion, made from the command line and the settings model.

`python -m sar_agent.commands.manual_pages FOLDER` writes sar-agent.1, sar-agent.toml.5 and
sar-agent.bash. `command_pages` and `setting_groups` are for other generators of reference pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from sar_agent import __version__
from sar_agent.config.example import value_text
from sar_agent.config.model import DEFAULT_PATH, Config, description_of


@dataclass(frozen=True)
class OptionText:
    """An option or argument of a command."""

    names: tuple[str, ...]
    """Such as `--json`; of an argument, its metavar."""
    takes: str
    """What its value is called; empty for a flag and for an argument."""
    help: str
    required: bool


@dataclass(frozen=True)
class CommandPage:
    """A command, or a subcommand with its group's name before its own."""

    name: str
    group: str
    """Its heading in `--help`."""
    help: str
    options: tuple[OptionText, ...]


@dataclass(frozen=True)
class SettingText:
    """A key of the settings file."""

    name: str
    default: str
    """As TOML."""
    help: str


def command_pages() -> list[CommandPage]:
    """All commands in the order of `--help`."""
    from sar_agent.cli import app

    root: Any = typer.main.get_command(app)
    return list(_pages(root, "", ""))


def _pages(command: Any, name: str, group: str) -> Iterator[CommandPage]:
    group = getattr(command, "rich_help_panel", None) or group
    group = group if isinstance(group, str) else ""
    if not hasattr(command, "commands"):
        yield CommandPage(name, group, _plain(command.help), tuple(map(_option, command.params)))
        return
    for word, part in command.commands.items():
        if not part.hidden:
            yield from _pages(part, f"{name} {word}".strip(), group)


def _option(parameter: Any) -> OptionText:
    argument = parameter.param_type_name == "argument"
    names = (*parameter.opts, *parameter.secondary_opts)
    shown = str(parameter.metavar or parameter.name.replace("_", "-").upper())
    flag = bool(getattr(parameter, "is_flag", False))
    return OptionText(
        (shown,) if argument else names,
        "" if argument or flag else shown,
        _plain(getattr(parameter, "help", "") or ""),
        bool(parameter.required),
    )


def setting_groups() -> Iterator[tuple[str, str, list[SettingText]]]:
    """(section, its meaning, its keys) of the settings file."""
    for name, field in Config.model_fields.items():
        section = field.annotation
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            continue
        keys = [
            SettingText(
                key,
                value_text(each.get_default(call_default_factory=True)),
                _sentence(description_of(each)),
            )
            for key, each in section.model_fields.items()
        ]
        yield name, " ".join((section.__doc__ or "").split()), keys


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _plain(text: str | None) -> str:
    """Paragraphs without the marks of typer's help."""
    paragraphs = re.split(r"\n\s*\n", (text or "").replace("\b", "").strip())
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _roff(text: str) -> str:
    """One paragraph; a line must not begin with a dot or an apostrophe."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def commands_manual() -> str:
    """sar-agent(1)."""
    lines = [
        f'.TH SAR-AGENT 1 "" "sar-agent {__version__}" "User Commands"',
        ".SH NAME",
        "sar\\-agent \\- InfiniBand routes for the jobs that Slurm runs",
        ".SH SYNOPSIS",
        ".B sar\\-agent",
        "COMMAND [OPTIONS]",
        ".SH DESCRIPTION",
        _roff(
            "Watches Slurm's running jobs, computes InfiniBand routes for them, proves the routes "
            "free of credit loops, and has OpenSM install them. In observe mode, the default, "
            "it changes nothing."
        ),
    ]
    heading = ""
    for page in command_pages():
        if page.group != heading:
            heading = page.group
            lines.append(f".SH {_roff((heading or 'Commands').upper())}")
        lines += [f".SS {_roff(page.name)}", *_roff(page.help).split("\n\n")]
        for option in page.options:
            names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in option.names)
            takes = f" \\fI{_roff(option.takes)}\\fR" if option.takes else ""
            lines += [".TP", names + takes, _roff(option.help or "Required.")]
    lines += [
        ".SH EXIT STATUS",
        ".TP\n0\nDone.",
        ".TP\n1\nA check failed, or another program did not answer.",
        ".TP\n2\nBad input.",
        ".SH FILES",
        f".TP\n.I {_roff(str(DEFAULT_PATH))}\nThe settings; see sar\\-agent.toml(5).",
        ".TP\n.I /var/lib/sar\\-agent\nState, history, kept generations.",
        ".SH SEE ALSO",
        ".BR sar\\-agent.toml (5),\n.BR opensm (8),\n.BR squeue (1)",
    ]
    return "\n".join(lines) + "\n"


def settings_manual() -> str:
    """sar-agent.toml(5)."""
    lines = [
        f'.TH SAR-AGENT.TOML 5 "" "sar-agent {__version__}" "File Formats"',
        ".SH NAME",
        "sar\\-agent.toml \\- settings of sar\\-agent",
        ".SH SYNOPSIS",
        f".I {_roff(str(DEFAULT_PATH))}",
        ".SH DESCRIPTION",
        _roff(
            "TOML. Every key has a default, so an empty file is valid. An unknown key is an error."
        ),
    ]
    for name, meaning, keys in setting_groups():
        lines += [f".SH [{name}]", _roff(meaning)]
        for key in keys:
            lines += [".TP", f"\\fB{_roff(key.name)}\\fR = {_roff(key.default)}", _roff(key.help)]
    lines += [".SH SEE ALSO", ".BR sar\\-agent (1)"]
    return "\n".join(lines) + "\n"


def bash_completion() -> str:
    """Completes commands and options without starting Python."""
    pages = command_pages()
    first = sorted({page.name.split()[0] for page in pages})
    cases: dict[str, list[str]] = {}
    for page in pages:
        words = page.name.split()
        if len(words) > 1:
            cases.setdefault(words[0], []).append(words[1])
        options = [n for option in page.options for n in option.names if n.startswith("-")]
        cases[page.name] = [*options, "--help"]
    lines = [
        "# Completion of sar-agent for bash.",
        "_sar_agent() {",
        '  local word=${COMP_WORDS[COMP_CWORD]} path="${COMP_WORDS[1]} ${COMP_WORDS[2]}" words=',
        "  COMPREPLY=()",
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f'    words="{" ".join(first)} --help --version"',
        "  else",
        '    case "$path" in',
    ]
    for name, words in sorted(cases.items(), key=lambda case: -len(case[0].split())):
        pattern = f'"{name}"' if " " in name else f'"{name} "*'
        lines.append(f'      {pattern}) words="{" ".join(words)}" ;;')
    lines += [
        "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "}",
        "complete -o default -F _sar_agent sar-agent",
    ]
    return "\n".join(lines) + "\n"


FILES = {
    "sar-agent.1": commands_manual,
    "sar-agent.toml.5": settings_manual,
    "sar-agent.bash": bash_completion,
}

if __name__ == "__main__":
    for name, make in FILES.items():
        (Path(sys.argv[1]) / name).write_text(make())
