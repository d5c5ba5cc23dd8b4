#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints C source that holds the given files: a table {folder/name, bytes, length} ended by NULL.
set -eu
echo '#include <stddef.h>'
echo 'struct builtin_file { const char *name; const unsigned char *text; size_t bytes; };'
echo 'extern const struct builtin_file builtin_files[];'
i=0
for f in "$@"; do
    echo "static const unsigned char file_$i[] = {"
    od -An -v -tu1 "$f" | sed 's/[0-9][0-9]*/&,/g'
    echo '0};'
    i=$((i + 1))
done
echo 'const struct builtin_file builtin_files[] = {'
i=0
for f in "$@"; do
    name=${f#data/}
    echo "    {\"${name%.json}\", file_$i, sizeof file_$i - 1},"
    i=$((i + 1))
done
echo '    {NULL, NULL, 0}};'
