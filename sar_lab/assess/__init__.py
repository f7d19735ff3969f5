"""`sar-agent assess`: what would this cluster gain? On a site's own dumps; nothing is installed.

`given.py` reads what a site has, `rate.py` routes, checks and measures, `verdict.py` says in one
sentence what comes of it, `over_time.py` asks the same along a history, `page.py` draws.
"""

from sar_lab.assess.assessment import Assessment, assess

__all__ = ["Assessment", "assess"]
