"""`counters`: what the ports counted, beside what was predicted."""

from __future__ import annotations

from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption, JsonOption, print_answer


def counters(config: ConfigOption = CONFIG_PATH, as_json: JsonOption = False) -> None:
    """Compare the bytes that links carried with the predicted loads, over the last window."""
    from sar_agent.agent.build import build_site
    from sar_agent.agent.counted_now import counted_now
    from sar_agent.config.model import load_config
    from sar_agent.counters.last_window import comparison_words

    settings = load_config(config)
    comparison, _ = counted_now(settings, build_site(settings).observer.observe())
    print_answer(comparison.json(), comparison_words(comparison), as_json=as_json)
