"""Tables of OpenSM's own engines, recorded on the fabrics of the papers."""

from sar_lab.opensm_tables.recorded import RecordedTables, lab_engine, record, recorded_path

__all__ = ["RecordedTables", "lab_engine", "record", "recorded_path"]
