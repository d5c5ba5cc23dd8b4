# SPDX-License-Identifier: MIT
# TAP for test scripts in sh: `. tests/tap.sh`, then ok WHAT COMMAND..., skip WHAT WHY, done_tests.
# Scripts run in the root of the sources; B is the build folder.
B=${B:-build}
trainyard=$B/trainyard
n_tests=0
n_failed=0

ok() {
    what=$1
    shift
    n_tests=$((n_tests + 1))
    if "$@"; then
        echo "ok $n_tests - $what"
    else
        n_failed=$((n_failed + 1))
        echo "not ok $n_tests - $what"
    fi
}

skip() {
    n_tests=$((n_tests + 1))
    echo "ok $n_tests - $1 # SKIP $2"
}

done_tests() {
    echo "1..$n_tests"
    [ "$n_failed" -eq 0 ]
    exit
}
