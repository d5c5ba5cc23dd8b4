#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/golden/NAME.cmd is run, its output and exit status must equal NAME.out. Kept there are
# only outputs whose every number can be derived without the program. `make golden` rewrites the
# .out files; read the difference before committing it.
. tests/tap.sh
PATH=$PWD/$B:$PATH
export PATH

for cmd in tests/golden/*.cmd; do
    want=${cmd%.cmd}.out
    got=$(mktemp)
    { sh "$cmd" 2>&1; echo "exit status $?"; } >"$got"
    [ -z "${GOLDEN:-}" ] || cp "$got" "$want"
    ok "$(basename "$cmd" .cmd)" diff -u "$want" "$got"
    rm -f "$got"
done
done_tests
