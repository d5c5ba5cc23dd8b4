#!/bin/sh
# SPDX-License-Identifier: MIT
# data/fabrics is what tools/fabrics.pl makes of data/micro/nccl, and names clusters that exist.
. tests/tap.sh

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$B"/trainyard calibrate import --json data/micro/nccl/*.csv | perl tools/fabrics.pl "$made"
ok 'the tables are written' [ -s "$made/aws-p5.json" ]
diff -r "$made" data/fabrics | head -5 | sed 's/^/# /'
ok 'data/fabrics is made of data/micro/nccl' diff -rq "$made" data/fabrics
for file in "$made"/*.json; do
    cluster=$(basename "$file" .json)
    ok "$cluster is a built-in cluster" [ -s "data/clusters/$cluster.json" ]
done
done_tests
