#!/bin/sh
# SPDX-License-Identifier: MIT
# The architecture as tests: which layer may include which, what the libraries export and need.
. tests/tap.sh

# Prints every include line of the files that matches neither a system header nor the layers.
only() { # only WHAT LAYERS FILES...
    what=$1 layers=$2
    shift 2
    bad=$(grep -nE '^ *# *include +"' "$@" /dev/null | grep -vE "\"($layers)/[^/\"]+\"")
    [ -z "$bad" ] || echo "$bad" | sed 's/^/# /'
    ok "$what" [ -z "$bad" ]
}
lacks() { # lacks WHAT PATTERN FILES...
    what=$1 pattern=$2
    shift 2
    bad=$(grep -nE "$pattern" "$@" /dev/null)
    [ -z "$bad" ] || echo "$bad" | sed 's/^/# /'
    ok "$what" [ -z "$bad" ]
}
files() { # every source and header of the folders, one level deep
    for folder in "$@"; do
        [ ! -d "$folder" ] || find "$folder" -maxdepth 1 -name '*.[ch]'
    done
}

# shellcheck disable=SC2046 # lists of files without blanks
{
only 'sim includes sim alone' 'include|sim' $(files sim)
only 'models includes sim and models' 'include|sim|models' $(files models)
only 'search includes no reader, report or command' 'include|sim|models|search' $(files search)
only 'models/spec includes no search' 'include|sim|models|models/spec' $(files models/spec)
only 'calibrate includes no report' 'include|sim|models|search|models/spec|calibrate' \
    $(files calibrate)
only 'reports includes no calibration' 'include|sim|models|search|models/spec|reports' \
    $(files reports)
only 'cli includes public headers and its own' 'include|cli' $(files cli)
lacks 'the public headers include no internal one' '#include "(sim|models|search|reports|cli)' \
    $(files include)
lacks 'only models/spec knows cJSON' '# *include .*cJSON' \
    $(files sim models search calibrate reports cli include)
# A profile of Nsight Systems is an SQLite database: its reader needs to open one, nothing else does.
lacks 'only reports/store* and calibrate/timeline_nsys know SQLite' '# *include .*sqlite3' \
    $(files sim models models/spec search cli include) \
    $(files calibrate | grep -v '^calibrate/timeline_nsys') \
    $(files reports | grep -v '^reports/store')
lacks 'only calibrate knows GSL' '# *include .*gsl/' \
    $(files sim models models/spec search reports cli include)
lacks 'only calibrate/fit* knows GSL' '# *include .*gsl/' \
    $(files calibrate | grep -v '^calibrate/fit')
lacks 'only calibrate/cpu_blas knows CBLAS' '# *include .*cblas|dlsym' \
    $(files sim models models/spec search reports cli include) \
    $(files calibrate | grep -v '^calibrate/cpu_blas')
lacks 'only calibrate knows expat' '# *include .*expat' \
    $(files sim models models/spec search reports cli include)
lacks 'only calibrate/device knows CUDA and NCCL' '# *include .*(cuda|cublas|nccl\.h)' \
    $(files sim models models/spec search calibrate reports cli include)
lacks 'trainyard-measure includes its own headers alone' '# *include +"(sim|models|search|reports|cli|include)' \
    $(find calibrate/device -name '*.cu' -o -name '*.h' -path 'calibrate/device/*')
lacks 'nothing but tests includes tests' '# *include .*tests/' \
    $(files sim models models/spec search calibrate reports cli include)
}

if [ -n "${SANITIZE:-}" ]; then
    skip 'symbols of the libraries' 'sanitizers interpose their own'
    done_tests
fi

undefined() { nm -D --undefined-only "$1" | awk '$1 == "U" {print $2}'; }
exports() { nm -D --defined-only "$1" | awk '{sub(/@.*/, "", $3); print $3}' | sort; }
empty() { [ -z "$1" ] || { echo "$1" | sed 's/^/# /'; return 1; }; }

core=$B/libtrainyard.so.0
tools=$B/libtrainyard-tools.so.0
ok 'the core is built' [ -s $core ]
ok 'the tools library is built' [ -s $tools ]
ok 'the core needs symbols of libc, libm and threads only' \
    empty "$(undefined $core | grep -v '@GLIBC_')"
ok 'the core is linked with libc and libm only' empty "$(readelf -d $core |
    sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libpthread|ld-linux[^.]*)\.so')"
ok 'the core prints nothing, ends nothing, catches no signal, reads no environment' empty \
    "$(undefined $core | grep -E '^(v?printf|puts|putchar|exit|_exit|signal|sigaction|setlocale|getenv)@')"
ok 'the core exports ty_* only' empty "$(exports $core | grep -v '^ty_')"
ok 'the tools library exports ty_* only' empty "$(exports $tools | grep -v '^ty_')"

# Declared in the public headers = exported by the two libraries, in both directions.
declared=$(perl -0777 -ne 'print "$1\n" while /TY_API\b[^;{}]*?\b(ty_\w+)\s*\(/g' \
    include/*.h | sort)
exported=$( (exports $core; exports $tools) | sort)
ok 'every declared function is exported, and no other' empty "$(
    { echo "$declared"; echo "$exported"; } | sort | uniq -u)"

# Two internal functions of one name would meet in a program that links both archives.
twice=$(nm "$B"/internal/core.a "$B"/internal/tools.a | awk '$2 == "T" {print $3}' | sort | uniq -d)
ok 'no internal function is defined twice' empty "$twice"

# Writable data would be state shared by all simulations of a process.
data=$(find "$B"/obj/sim "$B"/obj/models "$B"/obj/search -name '*.o' -exec objdump -t {} + |
    awk '/ \.(data|bss|tdata|tbss)\t/ && $NF !~ /^\./')
ok 'the libraries have no global or thread-local variable' empty "$data"
done_tests
