"""Hosts that differ from others of their kind: slower or narrower cables, fewer ports.

Hosts are of a kind if their names differ by numbers only (`n001` and `n144`). Names of which there
are fewer than four (`login1`, `ufm-a`: management nodes, most often) are a kind together. A port is
compared with the same port of the same HCA of its kind, at switches of the same speed.

**Weak spot:** a fault that four hosts of one kind share, at full width, is taken for an older
generation: one line names them, after all others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from sar_agent.fabric.cable_names import host_cable_name
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.model import F32, Fabric
from sar_agent.fabric.unlike import Odd, below_most, counted, slower

_FEW = 4
_NAMED = 3
_NAMELESS = re.compile(r"[HR]-[0-9a-f]{16}")


def odd_hosts(fabric: Fabric, own: F32) -> Iterator[Odd]:
    """Hosts of jobs with slower cables, and with fewer ports. `own`: as from `own_speeds`."""
    compute = np.flatnonzero(fabric.is_host_port & (fabric.terminal_kind == Kind.COMPUTE)).tolist()
    ports: dict[str, list[int]] = {}
    for t in compute:
        ports.setdefault(fabric.terminal_host[t], []).append(t)
    kind = _kinds([*ports])
    alike: dict[tuple[str, str, float], list[int]] = {}
    limit = _limits(fabric, compute, own)
    for t in compute:
        key = kind[fabric.terminal_host[t]], _hca_port(fabric, t), limit[t]
        alike.setdefault(key, []).append(t)
    for of in alike.values():
        yield from _slow(fabric, np.array(of))
    yield from _fewer_ports(ports, kind)


def _kinds(hosts: Sequence[str]) -> dict[str, str]:
    """Each host's kind: its name with # for numbers, or nothing where few are called so."""
    stem = {host: re.sub(r"[0-9]+", "#", host) for host in hosts if not _NAMELESS.fullmatch(host)}
    count = Counter(stem.values())
    return {host: found if count[found := stem.get(host, "")] >= _FEW else "" for host in hosts}


def _limits(fabric: Fabric, terminals: list[int], own: F32) -> dict[int, float]:
    """The most that the cable of each can have: that of the same port of other hosts at its switch
    where there are several, else the switch's own speed."""
    beside: dict[tuple[int, str], list[int]] = {}
    for t in terminals:
        beside.setdefault((int(fabric.terminal_switch[t]), _hca_port(fabric, t)), []).append(t)
    limit = dict[int, float]()
    for (switch, _), of in beside.items():
        fastest = float(fabric.terminal_rate[of].max()) if len(of) >= _FEW else float(own[switch])
        limit |= dict.fromkeys(of, fastest)
    return limit


def _slow(fabric: Fabric, of: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[Odd]:
    lanes = fabric.terminal_lanes[of] if len(fabric.terminal_lanes) else np.zeros(len(of), np.uint8)
    rate = fabric.terminal_rate[of]
    usual, odd, count = slower(rate, lanes)
    older = odd & (count >= _FEW) & (lanes >= lanes[usual]) & (lanes > 0)
    among = fabric.terminal_speed(int(of[usual]))
    for i in np.flatnonzero(odd & ~older).tolist():
        t = int(of[i])
        sentence = f"{host_cable_name(fabric, t)} is {fabric.terminal_speed(t)} among {among}"
        yield Odd(sentence, (), (t,), rank=(0, float(rate[i] / rate[usual]), int(lanes[i]), 1))
    for value in np.unique(rate[older]):
        these = of[older & (rate == value)].tolist()
        named = ", ".join(dict.fromkeys(fabric.terminal_host[t] for t in these[:_NAMED]))
        dots = " …" if len(these) > _NAMED else ""
        speed = fabric.terminal_speed(these[0])
        sentence = f"{len(these)} host ports are {speed} among {among}: {named}{dots}"
        yield Odd(sentence, (), tuple(these), rank=(3, float(value / rate[usual])))


def _fewer_ports(ports: dict[str, list[int]], kind: dict[str, str]) -> Iterator[Odd]:
    alike: dict[str, list[str]] = {}
    for host in ports:
        if not _NAMELESS.fullmatch(host):  # which host it is, is not known
            alike.setdefault(kind[host], []).append(host)
    for hosts in alike.values():
        count = np.array([len(ports[host]) for host in hosts])
        usual, odd = below_most(count)
        for i in np.flatnonzero(odd).tolist():
            sentence = (
                f"{hosts[i]} has {counted(count[i], 'port')} in the fabric, most hosts have "
                f"{usual:g}"
            )
            yield Odd(sentence, (), tuple(ports[hosts[i]]), rank=(2, float(count[i] / usual)))


def _hca_port(fabric: Fabric, t: int) -> str:
    """`mlx5_0/1`: the HCA by its description, without the host, and its port."""
    _, _, hca = fabric.terminal_description[t].partition(" ")
    return f"{hca}/{fabric.terminal_port_number[t]}"
