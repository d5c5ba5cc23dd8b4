#!/bin/sh
# SPDX-License-Identifier: MIT
# The example of the README is real: the command runs, and prints what is shown there apart from
# the numbers, which follow the model.
. tests/tap.sh
PATH=$PWD/$B:$PATH
export PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The first console block: lines after "$ " (with continuations) are the command, the rest output.
sed -n '/^```console/,/^```$/p' README.md | sed '1d;/^```$/,$d' >"$work/block"
sed -n '/^\$ /,/[^\\]$/p' "$work/block" | sed 's/^\$ //' >"$work/command"
sed '/^\$ /,/[^\\]$/d' "$work/block" | sed '/^$/d; /^\.\.\.$/d' >"$work/shown"
shape() { sed 's/[0-9][0-9.,]*/N/g; s/#*$//; s/[-+]N/N/g; s/ GiB\| MiB\| ms\| us\| s/ U/g; s/  */ /g; s/ *$//' "$1"; }

ok 'the README shows a command' grep -q '^trainyard predict' "$work/command"
ok 'it shows its output' [ "$(wc -l <"$work/shown")" -gt 10 ]
ok 'the command runs' sh -c "sh '$work/command' >'$work/out'"
# make golden: each line of the README becomes the next one of the output with its shape.
if [ -n "${GOLDEN:-}" ]; then
    perl -i -pe '
        BEGIN {
            sub shape { local $_ = shift; s/[0-9][0-9.,]*/N/g; s/#*\s*$//; s/[-+]N/N/g;
                s/ (GiB|MiB|ms|us|s)\b/ U/g; s/ +/ /g; s/ *$//; $_ }
            open my $f, "<", shift @ARGV or die; @out = <$f>; $next = 0;
        }
        $inside = 1 if /^```console/;
        $inside = 0 if /^```$/;
        if ($inside && /[0-9]/ && !/^\$|^ +--/) {
            for my $i ($next .. $#out) {
                next if shape($out[$i]) ne shape($_);
                ($_, $next) = ($out[$i], $i + 1);
                last;
            }
        }' "$work/out" README.md
fi
shape "$work/out" >"$work/out.shape"
shape "$work/shown" | while read -r line; do
    grep -qxF -- " $line" "$work/out.shape" || grep -qxF -- "$line" "$work/out.shape" ||
        echo "# not in the output: $line"
done >"$work/missing"
cat "$work/missing"
ok 'it prints what the README shows' [ ! -s "$work/missing" ]
# Every folder of the map exists.
sed -n '/^```text/,/^```$/p' README.md | sed -n 's/^\([a-z/]*\/\)  .*/\1/p' >"$work/folders"
ok 'the map names folders' [ "$(wc -l <"$work/folders")" -ge 8 ]
while read -r folder; do
    ok "the map is right about $folder" [ -d "$folder" ]
done <"$work/folders"
done_tests
