"""Engines that only papers need; `sar-agent route --engine NAME` knows them with sar-lab."""
