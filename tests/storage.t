#!/bin/sh
# SPDX-License-Identifier: MIT
# Input pipeline, checkpoints and failures on the command line and in files.
. tests/tap.sh
trainyard=${B:-build}/trainyard
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
refuses() { # refuses COMMAND...: bad input, exit status 2
    "$@" >"$work/out" 2>&1
    [ $? -eq 2 ]
}
plan='--model llama3-8b --cluster dgx-h100 --gpus 8 --gbs 64 --seq 4096 --recompute full'

# 8 samples of a GPU, 10 s of CPU each on one worker: 80 s, whatever the step.
feed='--input image --workers 1 --decode-ms 10000 --sample-bytes 1MB'
$trainyard predict $plan $feed >"$work/text"
ok 'workers set the step' grep -q 'step time      80.000 s' "$work/text"
ok 'input_stall is a line of the step' grep -q '^  input_stall ' "$work/text"
ok 'the inverse is printed' grep -q '    workers ' "$work/text"
$trainyard predict $plan $feed --json >"$work/json"
for key in input need workers_per_gpu read_bytes_per_s requests_per_s limit; do
    ok "JSON has $key" grep -q "\"$key\":" "$work/json"
done

# The same from files: tiers in the cluster, the pipeline in the plan.
cat >"$work/cluster.json" <<'J'
{"name": "own", "gpu": "h100-sxm", "gpus_per_node": 8, "network": {"nic": "400 Gb/s"},
 "storage": {"pfs": {"read": "1 GB/s", "latency": "0 s"}, "nvme": {"capacity": "1 TB"}}}
J
cat >"$work/plan.json" <<'J'
{"gpus": 8, "gbs": 64, "seq": 4096, "recompute": "full",
 "input": {"kind": "image", "workers": 1, "decode": "10 s", "sample_bytes": "1 MB"},
 "checkpoint": {"mode": "sync", "every_steps": 10}}
J
$trainyard predict --model llama3-8b --cluster "$work/cluster.json" --plan "$work/plan.json" \
    >"$work/files"
ok 'a plan file has an input' grep -q '^  input_stall ' "$work/files"
ok 'a plan file has checkpoints' grep -q '^  checkpoint ' "$work/files"
ok 'a cluster file has tiers' grep -q 'pfs can give 1000 MB/s a node' "$work/files"
sed 's/"read"/"raed"/' "$work/cluster.json" >"$work/bad.json"
ok 'a key that is none' refuses $trainyard predict --model llama3-8b --cluster "$work/bad.json" \
    --gpus 8
ok '--workers without --input' refuses $trainyard predict $plan --workers 4
ok '--checkpoint-every without --checkpoint' refuses $trainyard predict $plan --checkpoint-every 1h
ok '--save beside --checkpoint' refuses $trainyard predict $plan --checkpoint sync --mtbf 100d \
    --save 3s
ok 'an unknown tier' refuses $trainyard predict $plan --input text --storage tape
ok 'an unknown unit of --mtbf' refuses $trainyard predict $plan --mtbf 100d/rack

# UT-7.7: M = 11,135.08 s, C = 30 s at its best, R = 300 s: 0.9037 (0.9038 at the exact best).
$trainyard predict $plan --mtbf 11135.08s/job --save 30s --restart 300s --tokens 1T >"$work/run"
ok 'the share of useful time' grep -q 'run: 90.4 % of the time' "$work/run"
ok 'the days with their quantiles' grep -q 'days for 1e+12 tokens; 10 % of runs below' "$work/run"

# UT-7.10: the slowest of 1,024 nodes is 3.25 % above the mean where each varies by 1 %.
many='--model llama3-8b --cluster dgx-h100 --gpus 8192 --tp 8 --gbs 4096 --seq 4096'
$trainyard predict $many --step-variation 1% >"$work/varied"
ok 'steps wait for the slowest node' grep -q 'stragglers     a step takes 3.25 % longer' "$work/varied"
$trainyard predict $many --slow-node 1.25 --json >"$work/slow"
ok 'a slow node stretches every step' grep -q '"useful_ratio": 0.8,' "$work/slow"
ok '--slow-node below 1' refuses $trainyard predict $plan --slow-node 0.9
ok '--step-variation above 1' refuses $trainyard predict $plan --step-variation 2

# The tiers of a cluster are shown, and read back.
$trainyard show cluster "$work/cluster.json" >"$work/shown"
ok 'show prints tiers' grep -q '^storage.nvme.capacity  *1 TB ' "$work/shown"
ok 'show prints what is open' grep -q '^storage.pfs.total_read  *- ' "$work/shown"
$trainyard show cluster "$work/cluster.json" --json >"$work/again.json"
ok 'the file has them' grep -q '"capacity": "1 TB"' "$work/again.json"
$trainyard show cluster "$work/again.json" --json >"$work/thrice.json"
ok 'and reads back to itself' cmp -s "$work/again.json" "$work/thrice.json"
$trainyard show cluster dgx-h100 --set storage.pfs.read='3 GB/s' --json >"$work/set.json"
ok '--set storage.. of show' grep -q '"read": "3 GB/s"' "$work/set.json"

# Searches take them too, and plain predictions do not move.
$trainyard whatif $plan $feed --set input.workers=1,2,4 >"$work/whatif"
ok 'workers are an axis of a what-if' grep -q '^4 ' "$work/whatif"
$trainyard explain $plan $feed >"$work/explain"
ok 'explain says what more of it gives' grep -q 'of workers: +10.0 %' "$work/explain"
$trainyard predict $plan --db "$work/study.db" --checkpoint async >/dev/null
ok 'the database keeps the inputs' \
    sh -c "sqlite3 '$work/study.db' 'SELECT kind FROM input' 2>/dev/null | grep -q storage || ! command -v sqlite3"

# Monitoring: 400 W of each GPU from t = 30 on, whatever was predicted above it.
cat >"$work/power.json" <<'J'
{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":
"DCGM_FI_DEV_POWER_USAGE","Hostname":"n1","gpu":"3"},"values":[[10,"100"],[20,"100"],[30,"100"]]}]}}
J
$trainyard monitor $plan "$work/power.json" >"$work/monitor"
ok 'power departs' grep -q 'power .*departs since 1970-01-01T00:00:10Z; furthest: n1 gpu 3 at 100 W' \
    "$work/monitor"
ok '... and is the first' grep -q 'first to depart by more than 10 %: power' "$work/monitor"
ok 'monitor as JSON' sh -c "$trainyard monitor $plan --json '$work/power.json' | grep -q '\"departs\": true'"
ok 'predicted series' sh -c "$trainyard monitor $plan --print series | grep -q '^trainyard_predicted{signal=\"power\"'"
ok 'a dashboard' sh -c "$trainyard monitor --print dashboard | grep -q '\"schemaVersion\": 39'"
ok 'monitor without files' refuses $trainyard monitor $plan
ok 'a file without a known metric' refuses $trainyard monitor $plan --quiet "$work/json"
done_tests
