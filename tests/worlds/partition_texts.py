"""A partitions.conf and its policy."""

from __future__ import annotations

from sar_agent.fabric.spec import load_fabric

FABRIC = load_fabric("xgft:2;4,4;1,2")


GUID = [f"0x{guid:016x}" for guid in FABRIC.terminal_guid]


CONF = f"""\
# Everybody may talk to the subnet manager.
Default=0x7fff, ipoib : ALL=limited, SELF=full ;
gold=0x8001, ipoib, defmember=full : {GUID[0]}, {GUID[5]}=full,
    {GUID[9]}=limited ;  # over two lines
silver=0x0002 :
  mgid=ff12:401b::0707,sl=1 # a multicast group
  {GUID[1]}, 0x123 ;
silver=0x0002 : {int(GUID[2], 16)}=both ;
=0x3 : ALL_CAS, ALL_SWITCHES ;
"""


POLICY = """\
conf = "partitions.conf"
mode = "best-effort"
phy_links_most = 0.5
weights = { n003 = 7 }
[partition.gold]
policy = "phy"
weights = { n001 = 100.0 }
[partition.silver]
policy = "vlane"
group = "metals"
[partition.night]
hosts = ["n015", "n016"]
"""
