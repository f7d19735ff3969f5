"""Research: the papers, their peers, and engines that only papers need. Nothing imports it."""
