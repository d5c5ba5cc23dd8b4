#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual pages are clean, there is one for every command, and the main page names them all.
. tests/tap.sh

commands=$($trainyard help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
ok 'help lists commands' [ "$(echo "$commands" | wc -w)" -ge 7 ]
clean() { # mandoc finds nothing to say about the page
    said=$(mandoc -T lint -W warning "$1" 2>&1)
    [ -z "$said" ] || { echo "$said" | sed 's/^/# /'; return 1; }
}
for command in '' $commands; do
    page=$B/man/trainyard${command:+-$command}.1
    ok "$page exists" [ -s "$page" ]
    [ -z "$command" ] || ok "the main page names $command" \
        grep -q "^\.It Xr trainyard-$command 1" man/trainyard.1
    if command -v mandoc >/dev/null; then
        ok "$page has no warning" clean "$page"
    else
        skip "$page has no warning" 'no mandoc'
    fi
done
ok 'no page of a command that is gone' \
    [ "$(find "$B"/man -name '*.1' | wc -l)" -eq $(($(echo "$commands" | wc -w) + 1)) ]
done_tests
