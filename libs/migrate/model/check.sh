#!/bin/sh
# Explores the model with spin and prints spin's output.
#   check.sh SUBS UPDATES [MACRO]                 all states; MACRO is one of BREAK_…
#   check.sh ends [MACRO]                         every update ends
#   check.sh succeeds                             an update can succeed (then the exit code is 1)
#   check.sh trace HEADER SUBS UPDATES LENGTH     replay of a trace (1: the model can do it)
# Exit code 0: all states were explored, and none breaks a rule; 1: a state breaks a rule; 2: spin or the compiler failed,
# or the exploration is incomplete.
set -u
here=$(dirname "$(readlink -f "$0")")
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" && cp "$here/five_phase.pml" . || exit 2
case $1 in
trace) # trace.h is generated from a run; spin finds how far the model can follow it
  shift
  header=$1 subs=$2 updates=$3 length=$4
  speed=-O0
  cp "$header" trace.h
  macros="-DTRACE -DLENGTH=$length -DSUBS=$subs -DUPDATES=$updates" options="-DSAFETY -DNOCLAIM" run="" ;;
ends) # fairness makes the state space large, so one subscriber; without a bound on restarts no update need ever end
  macros="-DSUBS=1 -DUPDATES=2 -DCRASHES=1 ${2:+-D$2}" options="-DNFAIR=3" run="-a -f -N every_run_ends" ;;
succeeds) # spin must find a run that succeeds
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
