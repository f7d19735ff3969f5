"""The reference of everything that a site configures, calls or scrapes, read from the code itself.

Each module returns records (`config_entries`, `command_entries`, `metric_entries`,
`json_objects`), from which `pages.py` writes docs/reference/. A test compares the pages with the
code, so that nothing is added without its line.
"""
