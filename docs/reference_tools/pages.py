"""The pages of docs/reference/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docs.reference_tools.command_entries import EXIT_CODES, CommandEntry, command_entries
from docs.reference_tools.config_entries import ConfigEntry, config_entries, config_sections
from docs.reference_tools.error_entries import MEANINGS, error_entries
from docs.reference_tools.json_objects import json_objects
from docs.reference_tools.metric_entries import MetricEntry, metric_entries
from sar_agent import __version__
from sar_agent.commands.inputs import CONFIG_PATH

GENERATED = (
    "<!-- Written by `python -m docs.reference_tools`; change the code instead. -->\n\n"
    "[All pages](../README.md) · [Glossary](../glossary.md)\n"
)


def reference_pages(rules: str) -> dict[str, str]:
    """File name to text of each generated page; `rules` is the text of the alert rules."""
    return {
        "configuration.md": "\n".join(_configuration()) + "\n",
        "commands.md": "\n".join(_command_page()) + "\n",
        "json.md": "\n".join(_json()) + "\n",
        "metrics.md": "\n".join(_metrics(rules)) + "\n",
        "errors.md": "\n".join(_errors()) + "\n",
    }


def _configuration() -> Iterator[str]:
    entries = list(config_entries())
    yield "# Configuration\n"
    yield GENERATED
    yield (
        f"The {len(entries)} keys of `{CONFIG_PATH}` (TOML). Every key has a default, and an "
        "empty file is valid. An unknown key is an error. All keys exist since the first release, "
        f"{__version__}, and changes take effect when the agent restarts. "
        "[`deploy/sar-agent.toml`](../../deploy/sar-agent.toml) is the same as a file to copy; "
        "`sar-agent config check` tests yours, and `sar-agent config show` prints the values in "
        "use."
    )
    for section, model in config_sections():
        yield f"\n## [{section}]\n\n{' '.join((model.__doc__ or '').split())}\n"
        rows = [
            (f"`{e.key}`", _value(e), _prose(e.description))
            for e in entries
            if e.section == section
        ]
        yield from table(("key", "type, unit, range, default", "meaning"), rows)


def _value(entry: ConfigEntry) -> str:
    """`number, s, 0 … 60; default 30`."""
    facts = ", ".join(filter(None, (entry.type, entry.unit, entry.range)))
    return f"{facts}; default `{entry.default}`"


def _command_page() -> Iterator[str]:
    yield "# Command line\n"
    yield GENERATED
    yield (
        "`sar-agent COMMAND --help` and `sar-lab COMMAND --help` print the same for one command. "
        "Results go to stdout; errors, "
        "notes and progress go to stderr, an error as one line with its remedy.\n"
    )
    yield "## Exit codes\n"
    yield from table(("code", "meaning"), EXIT_CODES.items())
    panel = ""
    for entry in command_entries():
        if entry.panel != panel:
            panel = entry.panel
            yield f"\n## {panel}"
        yield from _one_command(entry)


def _one_command(entry: CommandEntry) -> Iterator[str]:
    yield f"\n### {entry.program} {entry.words}\n\n{_paragraphs(entry.help)}"
    if not entry.options:
        return
    rows = []
    for option in entry.options:
        names = ", ".join(f"`{name}`" for name in option.names)
        if not option.names[0].startswith("-"):
            names = f"`{option.names[0].upper()}`"
        facts = ["required" if option.required else "", option.range]
        facts += ["repeatable" if option.repeatable else ""]
        rows.append(
            (names, f"`{option.default}`" if option.default else "", ", ".join(filter(None, facts)),
             _prose(option.help))
        )  # fmt: skip
    yield ""
    yield from table(("option", "default", "", "meaning"), rows)


def _json() -> Iterator[str]:
    yield "# JSON\n"
    yield GENERATED
    yield (
        "Commands with `--json` print one object on one line. Keys are a contract: they are added, "
        "and are renamed only with a line in [CHANGELOG.md](../../CHANGELOG.md). Errors stay "
        "sentences on stderr, with the [exit code](commands.md#exit-codes). Keys in *italics* may "
        "be missing. Objects after GET are answers of `sar-agent run` at `agent.metrics_address`, "
        "for [its page](../live-page.md)."
    )
    objects = json_objects()
    commands = {entry.words: f"{entry.program} {entry.words}" for entry in command_entries()}
    for name, keys in objects.items():
        inner = f"GET {name}" if name.startswith("/") else f"Object {name}"
        yield f"\n## {commands.get(name, inner)}\n"
        rows = []
        for key in keys:
            meaning = _sentence(key.meaning)
            if key.object:
                meaning += f" [Object {key.object}](#object-{key.object})."
            rows.append((f"*`{key.name}`*" if key.optional else f"`{key.name}`", meaning))
        yield from table(("key", "meaning"), rows)


def _metrics(rules: str) -> Iterator[str]:
    yield "# Metrics\n"
    yield GENERATED
    yield (
        "`sar-agent run` serves these on `agent.metrics_address`. Units are base units: seconds, "
        "bytes, shares of 1. No label holds a job, a user or a host. Histograms have the usual "
        "series `_bucket`, `_sum` and `_count`. Alerts are in "
        "[`sar-agent.rules.yml`](../../deploy/prometheus/sar-agent.rules.yml), and their remedies "
        "in [troubleshooting](../troubleshooting.md#alerts).\n"
    )
    rows = [
        (
            f"`{e.name}`" + "".join(f", `{label}`" for label in e.labels),
            f"{e.type}, {e.unit}" if e.unit else e.type,
            _prose(e.meaning) + _alerts(e),
        )
        for e in metric_entries(rules)
    ]
    yield from table(("name, labels", "type, unit", "meaning and alerts"), rows)


def _alerts(entry: MetricEntry) -> str:
    """` Alert: SarAgentDown.`, as a link; empty if no alert reads the metric."""
    links = [f"[{alert}](../troubleshooting.md#{alert.lower()})" for alert in entry.alerts]
    return f" Alert: {', '.join(links)}." if links else ""


def _errors() -> Iterator[str]:
    yield "# Errors\n"
    yield GENERATED
    yield (
        "Sentences of the commands and of the agent's log, in the order of the program's parts; … "
        "stands for a name or a number. A remedy follows the sentence after a semicolon. "
        "[Troubleshooting](../troubleshooting.md) explains those that need more than a sentence.\n"
    )
    yield from table(
        ("kind", "exit code", "meaning"),
        ((f"`{kind}`", *meaning) for kind, meaning in MEANINGS.items()),
    )
    room = ""
    for entry in error_entries():
        if entry.room != room:
            room = entry.room
            yield f"\n## {room}\n"
            yield from table(("sentence", "remedy", "kind"), ())
        yield from _rows((_literal(entry.sentence), _literal(entry.remedy), f"`{entry.kind}`"))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    head = tuple(head)
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from _rows(*rows)


def _rows(*rows: Iterable[str]) -> Iterator[str]:
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _prose(text: str) -> str:
    """A sentence without what Markdown takes for markup."""
    return _literal(_sentence(text))


def _literal(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def _paragraphs(text: str) -> str:
    return "\n\n".join(_literal(" ".join(part.split())) for part in text.split("\n\n"))
