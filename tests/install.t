#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs into a temporary folder, builds the example planner against it with pkg-config alone,
# runs it, uninstalls: nothing may be left.
. tests/tap.sh

if [ -n "${SANITIZE:-}" ]; then
    skip 'install' 'a planner would need the sanitizer too'
    done_tests
fi
unset MAKEFLAGS MAKELEVEL MFLAGS
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
prefix=/opt/yard
root=$top/root$prefix
export PKG_CONFIG_PATH="$root/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$top/root"
cc=${CC:-gcc}

quietly() { "$@" >"$top/log" 2>&1 || { sed 's/^/# /' "$top/log"; return 1; }; }
build() { # build OUTPUT EXAMPLE EXTRA...
    output=$1 example=$2
    shift 2
    # shellcheck disable=SC2046 # flags
    quietly $cc -o "$output" "examples/$example.c" $(pkg-config --cflags trainyard) "$@"
}
linked() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | paste -sd ' '; }

ok 'make install' quietly make B="$B" DESTDIR="$top/root" PREFIX=$prefix install
for file in bin/trainyard lib/libtrainyard.a lib/libtrainyard.so lib/libtrainyard.so.0 \
    include/trainyard.h share/man/man1/trainyard.1 share/man/man1/trainyard-predict.1 \
    share/trainyard/clusters share/doc/trainyard/LICENSE; do
    ok "installed: $file" [ -e "$root/$file" ]
done
ok 'the installed program runs' quietly "$root/bin/trainyard" version
ok 'pkg-config knows the version' [ "$(pkg-config --modversion trainyard)" = "$(cat VERSION)" ]
# shellcheck disable=SC2046
ok 'a planner builds with pkg-config alone' build "$top/planner" planner $(pkg-config --libs trainyard)
ok 'it is linked with libtrainyard and libc only' \
    [ "$(linked "$top/planner")" = "libc.so.6 libtrainyard.so.0" ]
ok 'it runs' quietly env LD_LIBRARY_PATH="$root/lib" "$top/planner"
ok 'its answer is a plan' grep -qE '^tp [0-9]+ pp [0-9]+ dp [0-9]+: [0-9]+ tokens/s' "$top/log"
# 16 x 3.84 = 61.44 TB of NVMe: 20 hot and 41.44 of the 60 warm, so 8,000 + 2,000 x 41.44 / 60 of the
# 10,000 reads, filled at 32 GB/s.
# shellcheck disable=SC2046
ok 'the example of hot data builds' build "$top/hot" hot_data $(pkg-config --libs trainyard)
ok 'it runs' quietly env LD_LIBRARY_PATH="$root/lib" "$top/hot"
ok 'it says what fits' grep -q '^nvme holds 61.44 TB and serves 93.8 % of the reads$' "$top/log"
ok 'and how long it moves' grep -q '^it fills in 1920 s' "$top/log"
# shellcheck disable=SC2046
ok 'it links the static library too' build "$top/static" planner "$root/lib/libtrainyard.a" \
    $(pkg-config --static --libs-only-other trainyard) -lm -lpthread
ok 'make uninstall' quietly make B="$B" DESTDIR="$top/root" PREFIX=$prefix uninstall
ok 'uninstall leaves nothing' [ ! -e "$top/root" ]
done_tests
