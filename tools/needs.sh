#!/bin/sh
# SPDX-License-Identifier: MIT
# Are the libraries of a build there? Prints every missing Debian package in one message.
# usage: needs.sh COMPILER
set -u
cc=$1
missing=

need() { # need PACKAGE HEADER
    echo "#include <$2>" | $cc -E - >/dev/null 2>&1 || missing="$missing $1"
}

if ! command -v "${cc%% *}" >/dev/null 2>&1; then
    missing=" gcc libc6-dev libcjson-dev libsqlite3-dev libexpat1-dev libgsl-dev"
else
    need libc6-dev stdio.h
    need libcjson-dev cjson/cJSON.h
    need libsqlite3-dev sqlite3.h
    need libexpat1-dev expat.h
    need libgsl-dev gsl/gsl_linalg.h
fi
for tool in ld ar objcopy; do
    command -v $tool >/dev/null 2>&1 || { missing="$missing binutils"; break; }
done
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
[ -z "$missing" ] && exit 0
echo "trainyard cannot be built, these Debian packages are missing:$missing" >&2
echo "install them with: apt-get install$missing" >&2
exit 1
