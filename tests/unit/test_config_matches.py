"""`config check` names settings that match nothing, and both keys of a pair that does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.commands.config_file import changed_keys
from sar_agent.commands.named_files import read_named_files
from sar_agent.config.idle_keys import idle_keys
from sar_agent.config.model import ConfigError, parse_config
from sar_agent.fabric.spec import load_fabric
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import ibnetdiscover_text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[fabric]\njob_hcas = ["mlx4_[0-3]"]', "fabric.job_hcas has 'mlx4_[0-3]'"),
        ('[fabric]\njob_hcas = ["HCA-1", "/7"]', "fabric.job_hcas has '/7'"),
        ('[fabric]\nstorage_hosts = ["oss*"]', "fabric.storage_hosts has 'oss*'"),
        ('[fabric]\nother_hosts = ["n001", "login*"]', "fabric.other_hosts has 'login*'"),
        ('[fabric]\nslurm_names = ["n*=ib-*"]', "fabric.slurm_names has 'n*=ib-*'"),
        ('[fabric]\nslurm_names = ["c[1-2]=n[001-002]"]\nother_hosts = ["n001", "c2"]', ""),
        ('[fabric]\njob_hcas = ["HCA-9,HCA-1"]', ""),
        ('[cables]\nignore = ["S1-0", "S1-9"]', "is called 'S1-9'; did you mean S1-"),
        ('[fabric]\njob_hcas = ["HCA-*"]\nother_hosts = ["n00[1-2]"]', ""),
        ('[cables]\nignore = ["S1-0[1]", "n00[1-3]", "S2-*"]', ""),
    ],
)
def test_patterns_that_match_nothing_are_wrong(tmp_path: Path, settings: str, said: str) -> None:
    (tmp_path / "f").write_text(ibnetdiscover_text(load_fabric("xgft:2;4,4;1,2")))
    file = f'file = "{tmp_path / "f"}"'
    with_file = settings.replace("[fabric]", f"[fabric]\n{file}")
    if with_file == settings:
        with_file += f"\n[fabric]\n{file}"
    wrong = read_named_files(parse_config(with_file))[1]
    assert (not wrong) if not said else (len(wrong) == 1 and said in wrong[0])


def test_both_keys_of_a_pair_are_named() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config("[agent]\nmin_install_interval_seconds = 7200")
    assert str(refused.value) == (
        "configuration: agent.min_install_interval_seconds = 7200 is more than "
        "agent.max_staleness_seconds = 3600; reduce the one or raise the other"
    )
    pair = parse_config("[agent]\ndebounce_seconds = 20\ndebounce_max_seconds = 5")
    [idle] = idle_keys(pair, [])
    assert "agent.debounce_seconds = 20" in idle and "agent.debounce_max_seconds = 5" in idle
    assert not idle_keys(
        parse_config("[agent]\ndebounce_seconds = 20\ndebounce_max_seconds = 20"), []
    )


def test_patterns_are_compared_with_what_the_command_prints(tmp_path: Path) -> None:
    """Without `fabric.file`, the fabric's command is asked once; that it fails is no problem."""
    (tmp_path / "f").write_text(ibnetdiscover_text(load_fabric("xgft:2;4,4;1,2")))
    file = tmp_path / "agent.toml"
    text = f'[fabric]\ncommand = ["cat", "{tmp_path / "f"}"]\njob_hcas = ["HCA"]\n'
    file.write_text(text)
    done = sar_agent("config", "check", "--config", file)
    assert done.returncode == 2 and "fabric.job_hcas has 'HCA', and no HCA fits" in done.stderr
    file.write_text(text.replace('"HCA"', '"HCA-1"'))
    done = sar_agent("config", "check", "--config", file)
    assert done.returncode == 0 and "fabric: cat tells a fabric of 16 hosts" in done.stdout
    file.write_text('[fabric]\ncommand = ["false"]\njob_hcas = ["HCA"]\n')
    done = sar_agent("config", "check", "--config", file)
    assert done.returncode == 0 and "fabric: no answer now: " in done.stdout, done.stderr


def test_each_file_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")
    (tmp_path / "f").write_text(ibnetdiscover_text(fabric))
    (tmp_path / "queue").write_text("7|RUNNING|n001,x9|p|u|a|2|2026-01-01T00:00:00|\n")
    (tmp_path / "tree").write_text("SwitchName=a Nodes=n[001-004],y[1-2]\n")
    text = f"""[slurm]
source = "file"
jobs_file = "{tmp_path / "queue"}"
topology_conf = "{tmp_path / "tree"}"
[watch]
counters = "{tmp_path / "tree"}"
[fabric]
command = ["cat", "{tmp_path / "f"}"]
"""
    said, wrong = read_named_files(parse_config(text))
    where = "not in the fabric, the first is"
    assert [line.split(": ", 1)[0] for line in said] == [
        "fabric", "slurm.jobs_file", "slurm.topology_conf",
    ]  # fmt: skip
    assert f"a list of 1 running job; 1 of its hosts is {where} x9" in said[1]
    assert f"1 switch and 6 hosts; 2 of its hosts are {where} y1" in said[2]
    assert len(wrong) == 1 and wrong[0].startswith("watch.counters: "), wrong


@pytest.mark.parametrize(
    ("settings", "idle", "why"),
    [
        ("[slurm]\nrest_url = 'http://c:1'", "slurm.rest_url", "slurm.source is not slurmrestd"),
        ("[slurm]\njobs_file = '/q'", "slurm.jobs_file", "slurm.source is not file"),
        ("[opensm]\nread_back_command = ['a']", "opensm.read_back_command", "opensm.method"),
        ("[watch]\nwait_bytes = 32", "watch.wait_bytes", "watch.counters is empty"),
        ("[agent]\nmode = 'install'\n[fabric]\ncommand = ['a']", "fabric.command", "agent.mode"),
        ("[agent]\nmode = 'install'\n[opensm]\nlfts_dump = '/a'", "opensm.lfts_dump", "mode"),
        ("[events]\nsocket = ''\nmunge_socket = '/a'", "events.munge_socket", "events.tcp_ad"),
    ],
)
def test_keys_that_cannot_act_are_named_with_the_other_key(
    settings: str, idle: str, why: str
) -> None:
    config = parse_config(settings)
    found = [line for line in idle_keys(config, changed_keys(config)) if line.startswith(idle)]
    assert len(found) == 1 and why in found[0], found
