"""`sar-agent assess` estimates from a site's dumps what a cluster would gain; it installs nothing.

`site_data.py` reads the dumps, `rate.py` computes, checks and measures routes, `judgement.py`
states the result in one sentence, `over_time.py` repeats this along a history, and
`assess_page.py` writes the page.
"""

from sar_lab.assess.assessment import Assessment, assess

__all__ = ["Assessment", "assess"]
