"""python -m docs.reference_tools: writes docs/reference/ and deploy/sar-agent.toml."""

from pathlib import Path

from docs.reference_tools.config_entries import example_config
from docs.reference_tools.pages import reference_pages

rules = Path("deploy/prometheus/sar-agent.rules.yml").read_text()
for name, text in reference_pages(rules).items():
    Path("docs/reference", name).write_text(text)
Path("deploy/sar-agent.toml").write_text(example_config())
