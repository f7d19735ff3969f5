#!/bin/sh
# Explores the model: check.sh SUBS UPDATES [MACRO], ends [MACRO], succeeds,
# or trace HEADER SUBS UPDATES LENGTH (1: the model can do it). Prints what spin says.
# 0: no state breaks a rule (and all were seen); 1: one does; 2: spin or the compiler failed, or it was stopped.
set -u
here=$(dirname "$(readlink -f "$0")")
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" && cp "$here/five_phase.pml" . || exit 2
case $1 in
trace) # a header trace.h made of a run; found: how far it is one of the model's
  shift
  header=$1 subs=$2 updates=$3 length=$4
  speed=-O0
  cp "$header" trace.h
  macros="-DTRACE -DLENGTH=$length -DSUBS=$subs -DUPDATES=$updates" options="-DSAFETY -DNOCLAIM" run="" ;;
ends) # fairness makes it large, so one subscriber; restarts are bounded, else nothing ever ends
  macros="-DSUBS=1 -DUPDATES=2 -DCRASHES=1 ${2:+-D$2}" options="-DNFAIR=3" run="-a -f -N every_run_ends" ;;
succeeds) # that it can succeed at all: spin is to find it
  macros="-DSUBS=1 -DUPDATES=2" options="" run="-a -N never_succeeds" ;;
*)
  macros="-DSUBS=$1 -DUPDATES=$2 ${3:+-D$3}" options="-DSAFETY -DNOCLAIM" run="" ;;
esac
# shellcheck disable=SC2086
spin $macros -a five_phase.pml > spin.out 2>&1 || { cat spin.out; exit 2; }
# shellcheck disable=SC2086
gcc ${speed:--O2} -w $options -DCOLLAPSE -DMEMLIM=16000 -I. -o pan pan.c || exit 2
# shellcheck disable=SC2086
./pan -m1000000 $run > pan.out 2>&1
cat pan.out
grep -q 'errors: 0' pan.out && ! grep -q 'not completed\|max search depth too small' pan.out && exit 0
grep -q 'errors: [1-9]' pan.out && exit 1
exit 2
