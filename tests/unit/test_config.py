"""The agent's settings."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from docs.reference_tools.config_entries import example_config
from sar_agent.config.engine import EngineSettings, Options
from sar_agent.config.gone_keys import gone_keys
from sar_agent.config.model import (
    AgentConfig,
    Config,
    ConfigError,
    load_config,
    parse_config,
)

EXAMPLE = Path(__file__).parents[2] / "deploy/sar-agent.toml"


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "test.toml")
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith("test.toml: ")
    return caught.value.problems


def test_the_example_is_generated_and_has_every_key_with_its_default() -> None:
    given = tomllib.loads(EXAMPLE.read_text())
    assert EXAMPLE.read_text() == example_config(), "python -m docs.reference_tools writes it"
    assert load_config(EXAMPLE) == Config()
    for section, field in Config.model_fields.items():
        assert field.annotation is not None
        assert set(given[section]) == set(field.annotation.model_fields), section
    assert set(given) == set(Config.model_fields)


def test_options_of_engines_are_those_of_the_engines() -> None:
    """Declared once: as keys of the file, for engines, and on the command line."""
    settings = parse_config("[agent]\nseed = 7\nmax_lanes = 3\nobjective = 'routes'").agent
    options = Options.of(settings)
    assert (options.seed, options.max_lanes, options.objective) == (7, 3, "routes")
    for field in fields(EngineSettings):
        assert getattr(AgentConfig(), field.name) == getattr(Options(), field.name) == field.default
    assert "less than or equal to 15" in problems("[agent]\nmax_lanes = 16")[0]


def test_every_error_at_once_with_its_key_value_and_remedy() -> None:
    found = problems(
        '[agent]\nmode = "instal"\ninterval = 3\ngenerations_kept = 0\nstate_dir = "here"\n'
        '[slurm]\nstates = ["R"]\nsqueue = "squeue"\n'
        '[fabric]\nhost_pattern = "("\nenvironment = { a = 1 }\n[foo]\n'
    )
    expected = [
        ("agent.mode = 'instal'", "'observe' or 'install'"),
        ("agent.interval: no such key", "did you mean interval_seconds?"),
        ("agent.generations_kept = 0", "greater than or equal to 2"),
        ("agent.state_dir = 'here'", "absolute path"),
        ("slurm.states = ['R']", "there are BOOT_FAIL"),
        ("slurm.squeue = 'squeue'", "array"),
        ("fabric.host_pattern = '('", "not a regular expression"),
        ("fabric.environment.a = 1", "string"),
        (
            "foo: no such key",
            "there are agent, cables, events, fabric, keys, opensm, slurm, update",
        ),
    ]
    assert len(found) == len(expected)
    for start, part in expected:
        assert [one for one in found if one.startswith(start) and part in one], (start, found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", None),
        ("127.0.0.1:9777", ("127.0.0.1", 9777)),
        ("[::1]:9777", ("::1", 9777)),
        ("node:80", ("node", 80)),
    ],
)
def test_addresses(value: str, expected: tuple[str, int] | None) -> None:
    config = parse_config(f'[agent]\nmetrics_address = "{value}"')
    assert config.agent.metrics_host_port == expected


@pytest.mark.parametrize("value", ["9777", ":9777", "host:0", "host:70000", "a b:1", "::1:80"])
def test_bad_addresses(value: str) -> None:
    assert "write HOST:PORT" in problems(f'[agent]\nmetrics_address = "{value}"')[0]


def test_a_byte_order_mark_is_no_setting(tmp_path: Path) -> None:
    file = tmp_path / "sar-agent.toml"
    file.write_text('[agent]\nmode = "install"\n', encoding="utf-8-sig")
    assert load_config(file).agent.mode == "install"
    assert not gone_keys(file)


def test_no_toml_no_file_no_utf8(tmp_path: Path) -> None:
    assert "is not valid TOML" in problems("[agent\n")[0]
    assert "should be" in problems("agent = 1")[0]
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(bad)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", '"30"', "1979-05-27", "true", "[]"])
def test_intervals_that_are_none(value: str) -> None:
    found = problems(f"[agent]\ninterval_seconds = {value}")
    assert len(found) == 1 and found[0].startswith("agent.interval_seconds = ")
