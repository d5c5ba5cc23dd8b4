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
build() { # build OUTPUT EXTRA...
    output=$1
    shift
    # shellcheck disable=SC2046 # flags
    quietly $cc -o "$output" examples/planner.c $(pkg-config --cflags trainyard) "$@"
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
ok 'a planner builds with pkg-config alone' build "$top/planner" $(pkg-config --libs trainyard)
ok 'it is linked with libtrainyard and libc only' \
    [ "$(linked "$top/planner")" = "libc.so.6 libtrainyard.so.0" ]
ok 'it runs' quietly env LD_LIBRARY_PATH="$root/lib" "$top/planner"
ok 'its answer is a plan' grep -qE '^tp [0-9]+ pp [0-9]+ dp [0-9]+: [0-9]+ tokens/s' "$top/log"
# shellcheck disable=SC2046
ok 'it links the static library too' build "$top/static" "$root/lib/libtrainyard.a" \
    $(pkg-config --static --libs-only-other trainyard) -lm -lpthread
ok 'make uninstall' quietly make B="$B" DESTDIR="$top/root" PREFIX=$prefix uninstall
ok 'uninstall leaves nothing' [ ! -e "$top/root" ]
done_tests
