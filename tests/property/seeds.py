"""Good inputs of every kind that we read, from the tests' own texts, for a mutator to break."""

from __future__ import annotations

import json
from pathlib import Path

from sar_agent.agent.hints import Hint
from sar_agent.agent.state import SavedHold, State
from sar_agent.services.keys.leases import Lease
from sar_agent.slurm.squeue_text import HEADER
from tests.worlds.fabric_texts import HAND_WRITTEN
from tests.worlds.job_texts import SACCT
from tests.worlds.partition_texts import CONF, POLICY
from tests.worlds.topology_texts import MANUAL, TREE

_ROOT = Path(__file__).parents[2]
NET = HAND_WRITTEN.encode()
PORTS = b"""\
SW     1  1 0x0cc47a0300000100 4x HDR - CA   101  1 0x1070fd0300000010 ( 'leaf1' - 'n001 H1' )
SW     1  2 0x0cc47a0300000100 4x HDR - SW     2  2 0x0cc47a0300000200 ( 'leaf1' - 'leaf2' )
SW     1  3 0x0cc47a0300000100 4x SDR                                    'leaf1'
CA   101  1 0x1070fd0300000010 4x HDR - SW     1  1 0x0cc47a0300000100 ( 'n001 H1' - 'leaf1' )
"""
TOPOLOGY_CONF = (TREE.encode(), (_ROOT / "docs/examples/topology.conf").read_bytes())
TOPOLOGY_YAML = (
    MANUAL.encode(),
    b"- topology: flat\n  flat: true\n- topology: t\n  cluster_default: true\n  tree:\n"
    b"    switches:\n    - {switch: s1, nodes: 'n[1-2]'}\n    - {switch: s2, children: s1}\n",
    b"---\n- topology: &a t\n  tree: {switches: [{switch: s1, nodes: 'n[1-4]'}]}\n",
)
HOST_LISTS = tuple(
    each.encode()
    for each in (
        *("n001", "n[001-004]", "n[1-2,7]", "r[1-2]n[01-04]-ib", "a,b,c[1-3]"),
        *("n[1-4,09-11],m2", "rack1-[3-5]x[1-2]", "login,n[01-100]"),
    )
)

_ROWS = [
    "7|RUNNING|n[1-2]|batch|root|x|2|1795221989|(null)",
    "8_1|RUNNING|n3,n[5-7]|batch|ann|x|4|1795221989|sar:ring",
    "8_[2-9]|PENDING||batch|ann|x|4|N/A|sar:weight=0.2",
    "9+0|COMPLETING|n[008-010]|debug|bob|y|3|Unknown|a comment | with a bar",
    "9+1|RUNNING|m1|debug|bob|y|1|1795221999|(null)",
]
SQUEUE_TEXT = (
    ("\n".join([HEADER, *_ROWS]) + "\n").encode(),
    ("\n".join(_ROWS) + "\n").encode(),
)
_PLANNED = ("(null)", "", "n[011-012]", "(null)", "")
SQUEUE_LIVE = (
    "".join(f"mark|{row}|100{i}|{i}7|{_PLANNED[i]}\n" for i, row in enumerate(_ROWS)).encode(),
)


def _jobs(*jobs: dict[str, object]) -> bytes:
    return json.dumps({"meta": {"plugin": {}}, "jobs": jobs, "errors": []}).encode()


def _set(number: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": number}


SQUEUE_JSON = (
    _jobs(
        {"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]", "user_id": 1000, "start_time": 1},
        {
            **{"job_id": 9, "job_state": "RUNNING", "nodes": "m1", "het_job_id": 9},
            **{"het_job_offset": 1, "comment": "sar:ring", "user_name": "bob"},
        },
    ),
    _jobs(
        {
            **{"job_id": 8, "job_state": ["RUNNING"], "nodes": "n3,n[5-7]", "partition": "batch"},
            **{"array_job_id": _set(8), "array_task_id": _set(1), "start_time": _set(1795221989)},
            **{"admin_comment": "sar:shift:3", "comment": None, "het_job_id": _set(0)},
        }
    ),
)
_TIMES = {"start": 1767607200, "end": 1767610800}
HISTORIES = (
    SACCT.encode(),
    b"job,start,end,nodelist\n7,1767607200,1767610800,n1;n2\n8,1767607205,1767607220,n[1-4]\n",
    (_ROOT / "docs/examples/history.csv").read_bytes()[:2000],
    json.dumps(
        {
            "jobs": [
                {
                    "job_id": 7,
                    "state": {"current": ["COMPLETED"]},
                    "nodes": "n[1-2]",
                    "time": _TIMES,
                },
                {"job_id": 8, "state": {"current": "RUNNING"}, "nodes": "n3", "time": {"start": 9}},
            ]
        }
    ).encode(),
)
JOB_MAPS = (b"# host jobid\nn001 7\nn002 7\n# 18 is 6_2\nn003 18\nn004 9+1\n",)
TRAFFIC = tuple(
    each.encode()
    for each in (
        *("ring", "shift:3", "stencil2d:4x4", "stencil3d:2x2x4", "alltoall", "weight=0.2"),
        *("none", "transpose", "ring,weight=0.5", "butterfly"),
    )
)
PHASES = (b"[one]\n0 1\n1 2\n2 3\n[two]\n3 0\n# a comment\n4 5\n", b"0 1\n\n1 0\n")
PARTITIONS = (CONF.encode(), b"Default=0x7fff : ALL=full ;\na=0x2 : SELF=full ;\n")
POLICIES = (
    POLICY.replace('conf = "partitions.conf"\n', "")
    .replace("[partition.gold]", '[partition.gold]\nhosts = ["n001"]')
    .replace("[partition.silver]", '[partition.silver]\nhosts = ["n002"]')
    .encode(),
    b'jobs = true\nbalance = "jobs"\n[partition.18]\npolicy = "phy"\nhosts = ["n001", "n002"]\n',
)

_SETS = frozenset({frozenset({"n1", "n5"}), frozenset({"n2", "n6"})})
_STATE = State(
    generation=7, engine="sar", jobs=_SETS, fabric_digest="ab" * 32, installed_at=1.5, identity=""
)
STATES = (
    _STATE.model_dump_json(indent=1).encode(),
    _STATE.model_copy(update={"hold": SavedHold.lasting(60.0)}).model_dump_json().encode(),
)
_LEASE = Lease(
    **{"job": "7", "phase": "job", "uid": 1000, "offset": 2, "traffic": "ring", "pairs": (0, 1)},
    **{"nodes": None, "tasks": "2(x3),1", "hosts": ("n1", "n2"), "ends": 9e9, "made_at": 1.0},
    **{"own": 1, "total": 2, "seconds": 0.5},
)
LEASES = (json.dumps([_LEASE.model_dump(mode="json")] * 2).encode(),)
_HINT = Hint(job="7", uid=1000, traffic="ring", at=1.0)
HINTS = (json.dumps([_HINT.model_dump(mode="json")] * 2).encode(),)
RUNS = (b'{"phase":"unpath","update":3,"generation":7,"why":""}\n',)
MEMBERS = (
    b'{"aaaaaaaaaaaaaaaa":{"job":"7","uid":1000},"bbbbbbbbbbbbbbbb":{"job":"8","uid":null}}\n',
)
SETTINGS = (
    (_ROOT / "deploy/sar-agent.toml").read_bytes(),
    b'[agent]\nmode = "install"\nengine = "sar-plus"\ninterval_seconds = 30\n'
    b'[slurm]\nsqueue = ["squeue"]\npartition_hints = { debug = "weight=0.1" }\n'
    b'[fabric]\nhost_pattern = "(?P<host>n[0-9]+)( (?P<hca>.*))?"\n'
    b"[keys]\nenabled = true\n[update]\nmode = 'five-phase'\n",
)


def _message(event: str, **more: object) -> bytes:
    said = {"v": 1, "event": event, "job": "7", "id": "0123456789abcdef", "at": 1.0, **more}
    return json.dumps(said).encode()


MESSAGES = (
    _message("start", nodes="n[001-004]", traffic="ring", tasks="2(x3),1", user=1000),
    _message("end"),
    _message("hint", traffic="weight=0.2"),
    _message("hint", traffic="shift:3", nodes="n1,n[3-9]", tasks="4(x8)"),
    _message("key", phase="p1", traffic="butterfly", lease=60.5),
    _message("key", phase="p2", pairs=[0, 1, 1, 2, 2, 0], nodes="n[1-3]", tasks="1(x3)"),
    _message("key-done", phase="p1"),
    _message("key-list"),
    _message("subscribe", subscriber="a" * 16, offset=0, update=3),
    _message("ack", subscriber="a" * 16, phase="unpath", update=3, offset=1),
    _message("unsubscribe", subscriber="a" * 16),
    b"status",
)

SINFO = (
    b"n001|idle|batch*\nn002|idle~|batch*\nn[003-004]|drained*|batch*\nn005|mixed-|gpu\n",
    b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
    b"batch*       up   infinite      2   idle n[001-002]\n"
    b"gpu          up 1-00:00:00      1   plnd n003\n",
    json.dumps(
        {"nodes": [{"name": "n001", "state": "idle", "state_flags": [], "partitions": ["batch"]}]}
    ).encode(),
    json.dumps(
        {
            "sinfo": [
                {
                    "node": {"state": ["IDLE", "PLANNED"]},
                    "nodes": {"nodes": ["n001", "n002"]},
                    "partition": {"name": "batch"},
                }
            ]
        }
    ).encode(),
)
ADAPTIVE = (
    b"routing_engine ar_updn\nar_sl_mask 0xFFFF\nhbf_sl_mask 0x4\nar_transport_mask 0xA # a\n",
    b"START_NODES\nEND_NODES\nSTART_AR_INFO\nNodeGUID,e,by_sl_en,enable_by_sl_mask,by_transport_disable,by_sl_hbf_en,"
    b"enable_by_sl_mask_hbf\n0x0000000000000001,1,1,0x00ff,5,1,3\n"
    b"0x0000000000000002,0,0,0,0,0,N/A\n"
    b"END_AR_INFO\n",
)

PERFQUERY = b"""\
# Port extended counters: Lid 1 port 5 (CapMask: 0x1300)
PortSelect:......................5
PortXmitData:....................4711
PortRcvData:.....................42
# Port counters: Lid 2 port 6 (CapMask: 0x1300)
PortXmitData:....................11
PortXmitWait:....................5
"""
DB_CSV_COUNTERS = (
    "PortXmitData,PortRcvData,PortXmitWait,PortXmitDataExtended,PortRcvDataExtended,PortXmitWaitExt"
)
IBDIAGNET_PM = b"""\
---------------------------------------------
Port=5 Lid=0x0007 GUID=0x0008f10401000000 Device=52000 Port Name=sw1/P5
---------------------------------------------
port_xmit_data=0xffffffff
port_xmit_wait=0x10
port_xmit_data_extended=0x200000000
port_rcv_data_extended=NA
"""
