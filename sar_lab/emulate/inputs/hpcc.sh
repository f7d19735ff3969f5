#!/bin/sh
# hpcc.sh MPIFFT|LatencyBandwidth: runs HPCC until the end of this section, and prints its number.
# HPCC has no way to run one part alone, and its parts take minutes on slow cables.
cd "$SAR_FOLDER" && rm -f hpccoutf.txt
mpirun hpcc >&2 &
until grep -q "^End of $1 section" hpccoutf.txt 2>/dev/null; do
	kill -0 $! 2>/dev/null || { echo "hpcc ended before its section $1" >&2; exit 1; }
	sleep .2
done
kill $!
case $1 in
MPIFFT) sed -n '/^Begin of MPIFFT/,/^End of/s|^Computing: *\([0-9.e+-]*\)$|trial: \1 s|p' hpccoutf.txt ;;
*) sed -n 's|^Naturally Ordered Ring Bandwidth: *\([0-9.e+-]*\) *MB/s|trial: \1 MB/s|p' hpccoutf.txt ;;
esac
