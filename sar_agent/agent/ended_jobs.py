"""What jobs give up when they have ended: hints, keys, service levels and subscriptions."""

from __future__ import annotations

from sar_agent.agent.observe_site import EMPTY_AGAIN, SiteObserver, owners
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.agent.updates import Updates
from sar_agent.install.transit import Transit
from sar_agent.keys.pool import KeyPool


class EndedJobs:
    """Compares each good poll of the queue with what is kept for jobs."""

    def __init__(
        self,
        observer: SiteObserver,
        pool: KeyPool,
        transit: Transit,
        updates: Updates,
        pacing: Pacing,
    ) -> None:
        self.observer, self.pool, self.pacing = observer, pool, pacing
        self.transit, self.updates = transit, updates

    def follow(self) -> None:
        """Nothing where the queue was not read."""
        observer = self.observer
        if observer.queue.problem:
            return
        queue = observer.queue.value or ()
        if observer.doubted:
            self.pacing.again(EMPTY_AGAIN)
        else:
            observer.hints.drop_ended(queue)
            self.pool.release_ended({number for job in queue for number in job.numbers})
            if self.transit.levels:
                self.transit.levels.forget_ended(job.start for job in queue)
        self.updates.queue_read(owners(observer.seen), observer.began)
