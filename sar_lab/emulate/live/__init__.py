"""`sar-lab emulate --live`: the whole loop, where the fabric carries real packets of real jobs.

ibsim and a stock OpenSM with our plugin; slurmctld and, in the namespace of every host, a slurmd
that starts ranks of an MPI program; the agent in install mode. Routes in the namespaces of switches
follow what the switches of ibsim answer to MADs.

`site.py` starts all of it, `followed.py` asks the switches, `mpi_jobs.py` starts jobs and reads
their iterations, `losses.py` counts packets, `story.py` waits and tells, `play.py` is what happens,
`page.py` draws it.
"""
