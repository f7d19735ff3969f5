"""The reference of everything that a site configures, calls or scrapes, read from the code itself.

Each module returns records (`config_entries`, `command_entries`, `metric_entries`,
`json_objects`), from which `python -m docs.reference_tools` writes docs/reference/ and
deploy/sar-agent.toml, and `manual_pages` what packages install. A test compares the pages with the
code, so that nothing is added without its line. These are tools of a checkout: no package has them.
"""
