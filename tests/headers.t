#!/bin/sh
# SPDX-License-Identifier: MIT
# Each public header compiles alone, as C99 and as C++, without a warning.
. tests/tap.sh

compiles() { # compiles COMPILER LANGUAGE STANDARD HEADER
    echo "#include \"$4\"" | $1 -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -Iinclude \
        -fsyntax-only - 2>&1 | sed 's/^/# /' | grep . && return 1
    return 0
}

cc=${CC:-gcc}
cxx=$(command -v g++ || command -v clang++ || true)
for path in include/*.h; do
    header=${path#include/}
    ok "$header as C99" compiles "$cc" c c99 $header
    if [ -n "$cxx" ]; then
        ok "$header as C++11" compiles "$cxx" c++ c++11 $header
    else
        skip "$header as C++11" 'no C++ compiler'
    fi
done
ok 'trainyard.h can be read in one sitting' [ "$(wc -l <include/trainyard.h)" -lt 900 ]
done_tests
