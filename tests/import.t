#!/bin/sh
# SPDX-License-Identifier: MIT
# `calibrate import` from outside: exit status, text, JSON lines, several files.
. tests/tap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for i in 5 6 7; do
    echo " iteration $i/ 9 | elapsed time per iteration (ms): 100$i.0 | global batch size: 8 |"
done >"$work/good.log"
echo 'nothing to see' >"$work/bad.log"
status() { # status WANT ARGS...
    want=$1
    shift
    $trainyard calibrate "$@" >"$work/out" 2>"$work/err"
    [ $? -eq "$want" ]
}

ok 'a log is read' status 0 import "$work/good.log"
ok 'its text names the step time' grep -q 'median 1.006 s' "$work/out"
ok 'a file without measurement: status 2' status 2 import "$work/bad.log"
ok 'the reason names it' grep -q 'bad.log.*no line with a step time' "$work/err"
ok 'one good file is enough' status 0 import "$work/bad.log" "$work/good.log"
ok 'the bad one is still reported' grep -q 'bad.log' "$work/err"
ok '--json' status 0 import --json "$work/good.log"
ok 'one object a line' [ "$(grep -c '^{.*}$' "$work/out")" -eq 1 ]
ok '--out' status 0 import --out "$work/runs.jsonl" "$work/good.log" "$work/good.log"
ok 'a line for each run' [ "$(grep -c '^{"kind": "training_run"' "$work/runs.jsonl")" -eq 2 ]
ok 'no file: status 2' status 2 import
ok 'unknown sub-command: status 2' status 2 imprt
ok 'missing file' status 2 import "$work/none.log"
done_tests
