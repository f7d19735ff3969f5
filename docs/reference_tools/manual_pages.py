"""Man pages and shell completion, made from the command line and the settings model.

`python -m docs.reference_tools.manual_pages FOLDER` writes sar-agent.1, sar-lab.1,
sar-agent.toml.5, sar-agent.bash and sar-lab.bash.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

from docs.reference_tools.command_entries import (
    EXIT_CODES,
    PROGRAMS,
    CommandEntry,
    CommandOption,
    command_entries,
)
from docs.reference_tools.config_entries import config_entries, config_sections
from sar_agent import __version__
from sar_agent.config.model import DEFAULT_PATH

ABOUT = {
    "sar-agent": (
        "InfiniBand routes for the jobs that Slurm runs",
        "Watches Slurm's running jobs, computes InfiniBand routes for them, proves the routes "
        "free of credit loops, and has OpenSM install them. In observe mode, the default, "
        "it changes nothing.",
    ),
    "sar-lab": (
        "simulations and replays of InfiniBand routes",
        "Simulates traffic on the routes of sar-agent's engines, replays job histories, and "
        "computes the tables and figures of papers again. It installs nothing on a cluster.",
    ),
}
"""What each program is, in a line and in a paragraph."""


def _commands_of(program: str) -> list[CommandEntry]:
    return [entry for entry in command_entries() if entry.program == program]


def _plain(text: str | None) -> str:
    """Paragraphs without the marks of typer's help."""
    paragraphs = re.split(r"\n\s*\n", (text or "").replace("\b", "").strip())
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _roff(text: str) -> str:
    """One paragraph; a line must not begin with a dot or an apostrophe."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def _names(option: CommandOption) -> str:
    """An option's names and its value; an argument has only the latter."""
    if not option.names[0].startswith("-"):
        return f"\\fB{_roff(option.value)}\\fR"
    names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in option.names)
    return names + (f" \\fI{_roff(option.value)}\\fR" if option.value else "")


def commands_manual(program: str) -> str:
    """sar-agent(1) or sar-lab(1)."""
    what, description = ABOUT[program]
    other = next(name for name in PROGRAMS if name != program)
    lines = [
        f'.TH {program.upper()} 1 "" "{program} {__version__}" "User Commands"',
        ".SH NAME",
        _roff(f"{program} - {what}"),
        ".SH SYNOPSIS",
        f".B {_roff(program)}",
        "COMMAND [OPTIONS]",
        ".SH DESCRIPTION",
        _roff(description),
    ]
    for panel, entries in groupby(_commands_of(program), lambda entry: entry.panel):
        lines.append(f".SH {_roff((panel or 'Commands').upper())}")
        for entry in entries:
            lines += [f".SS {_roff(entry.words)}", *_roff(_plain(entry.help)).split("\n\n")]
            for option in entry.options:
                lines += [".TP", _names(option), _roff(option.help or "Required.")]
    lines += [
        ".SH EXIT STATUS",
        *(f".TP\n{code}\n{_roff(meaning)}" for code, meaning in EXIT_CODES.items()),
        ".SH FILES",
        f".TP\n.I {_roff(str(DEFAULT_PATH))}\nThe settings; see sar\\-agent.toml(5).",
        ".TP\n.I /var/lib/sar\\-agent\nState, history, kept generations.",
        ".SH SEE ALSO",
        f".BR {_roff(other)} (1),\n.BR sar\\-agent.toml (5),\n.BR opensm (8),\n.BR squeue (1)",
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
    meanings = dict(config_sections())
    for section, entries in groupby(config_entries(), lambda entry: entry.section):
        lines += [f".SH [{section}]", _roff(" ".join((meanings[section].__doc__ or "").split()))]
        for entry in entries:
            key = f"\\fB{_roff(entry.key)}\\fR = {_roff(entry.default)}"
            lines += [".TP", key, _roff(entry.sentence)]
    lines += [".SH SEE ALSO", ".BR sar\\-agent (1)"]
    return "\n".join(lines) + "\n"


def bash_completion(program: str) -> str:
    """Completes commands and options without starting Python."""
    function = f"_{program.replace('-', '_')}"
    commands = _commands_of(program)
    first = sorted({command.words.split()[0] for command in commands})
    cases: dict[str, list[str]] = {}
    for command in commands:
        words = command.words.split()
        if len(words) > 1:
            cases.setdefault(words[0], []).append(words[1])
        options = [n for option in command.options for n in option.names if n.startswith("-")]
        cases[command.words] = [*options, "--help"]
    lines = [
        f"# Completion of {program} for bash.",
        f"{function}() {{",
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
        f"complete -o default -F {function} {program}",
    ]
    return "\n".join(lines) + "\n"


FILES: dict[str, Callable[[], str]] = {
    "sar-agent.toml.5": settings_manual,
    **{f"{name}.1": partial(commands_manual, name) for name in PROGRAMS},
    **{f"{name}.bash": partial(bash_completion, name) for name in PROGRAMS},
}

if __name__ == "__main__":
    for name, make in FILES.items():
        (Path(sys.argv[1]) / name).write_text(make())
