"""python -m sar_agent.reference: writes docs/reference/ in a checkout."""

from pathlib import Path

from sar_agent.reference.pages import write_reference

write_reference(Path("docs/reference"), Path("deploy/prometheus/sar-agent.rules.yml"))
