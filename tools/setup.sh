#!/bin/sh
# SPDX-License-Identifier: MIT
# From a fresh Debian with nothing but git to a result, in one command.
#
#   sh tools/setup.sh demo    installs what is missing, builds, runs the main job
#   sh tools/setup.sh test    installs what is missing, builds, runs all tests
#
# Needs root only where a package is missing; without root it says which ones and how.
set -eu
cd "$(dirname "$0")/.."

build_packages='gcc libc6-dev make pkg-config libcjson-dev libsqlite3-dev libexpat1-dev libgsl-dev'
case ${1-} in
demo) packages="$build_packages gnuplot-nox" ;;
test) packages="$build_packages libopenblas0-pthread gnuplot-nox perl g++ mandoc clang-format" ;;
*)
    echo "usage: sh tools/setup.sh demo|test" >&2
    exit 2
    ;;
esac

missing=
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
        missing="$missing $package"
done
if [ -n "$missing" ] && [ "$(id -u)" -ne 0 ]; then
    echo "These Debian packages are missing:$missing" >&2
    echo "Have root run: apt-get update && apt-get install$missing" >&2
    exit 1
fi
if [ -n "$missing" ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086 # a list of packages
    apt-get install -y -q --no-install-recommends $missing
fi

jobs=$(nproc)
if [ "$1" = test ]; then
    # Under the sanitizers first: the last line is the verdict of the plain build.
    make -j"$jobs" lint check-asan
    exec make -j"$jobs" check
fi
make -j"$jobs"
set -x
build/trainyard predict --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 4 --pp 4 \
    --gbs 512 --seq 8192
build/trainyard sweep --model llama3-70b --cluster dgx-h100 --gpus '64..1024*2' --gbs 1024 \
    --seq 8192 --db build/demo.db
build/trainyard report --db build/demo.db --out build/demo
