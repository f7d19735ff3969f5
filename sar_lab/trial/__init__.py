"""`sar-agent trial`: a few sets of tables in random order, the site's own benchmarks on each of
them, and the site's own tables again at the end; in an hour of a reservation.

`site_look.py` reads the site and says what a trial would show. `trial_run.py` installs, runs and
measures. `way_back.py` has the record that is on disk before the first install, and the way back.
`results.py` and `page.py` write what was found, `send.py` the folder without names, and
`rehearsal.py` times the commands in an emulated fabric of the site (`sar_lab/emulate/`) first.
"""
