#!/bin/sh
# SPDX-License-Identifier: MIT
# The committed constants are what `make profiles` gives, to 1e-4.
. tests/tap.sh

if [ -z "${TRAINYARD_LONG:-}" ]; then
    skip 'constants of the profiles' 'the fit takes minutes: TRAINYARD_LONG=1'
    done_tests
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cp -r data "$top"

ok 'the fit' "$B/fit_profiles" data/runs/published.csv "$top/data"

# Same constants of the same files, the value in the third column.
same_values() {
    paste -d, data/profiles/constants.csv "$top/data/profiles/constants.csv" | awk -F, '
        NR == 1 { next }
        { n++; off = $3 > 0 ? $12 / $3 - 1 : 1 }
        $1 != $10 || $2 != $11 || off > 1e-4 || off < -1e-4 { print "# " $1, $2, $3, $12; bad = 1 }
        END { exit bad || n < 100 }'
}
ok 'gives the committed constants' same_values

names() { (cd "$1" && find profiles stacks sites -type f | sort); }
ok 'and no other files' test "$(names data)" = "$(names "$top/data")"
done_tests
