#!/bin/sh
# SPDX-License-Identifier: MIT
# Sweeps in parts: killed and resumed, in shards, as the job files of examples/ start them. The
# reference is one sweep in one go; rows are compared in all columns but the id.
. tests/tap.sh

dir=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-sweeps.XXXXXX")
trap 'rm -rf "$dir"' EXIT
root=$PWD
case $B in /*) bin=$B ;; *) bin=$root/$B ;; esac
PATH=$bin:$PATH
TRAINYARD_SHARD=
unset TRAINYARD_SHARD SLURM_ARRAY_TASK_ID OMPI_COMM_WORLD_RANK PMI_RANK JOB_COMPLETION_INDEX \
    SLURM_PROCID
arguments='--model llama2-7b --cluster dgx-a100 --gpus 8,16 --gbs 64 --seq 4096 --quiet'
cd "$dir" || exit 1

# `run=exec sweep ... &`: $! is the program itself, so that kill reaches it.
run=
sweep() { # sweep FILE [OPTIONS]
    file=$1
    shift
    $run trainyard sweep $arguments --db "$file" "$@"
}

# same_study FILE: sound, one row a plan, and the rows, rejections and details of whole.db
cat >same.py <<'PY'
import sqlite3, sys
def study(path):
    db = sqlite3.connect(path)
    if db.execute('PRAGMA integrity_check').fetchone()[0] != 'ok':
        sys.exit('# ' + path + ': not sound')
    rows = db.execute('SELECT * FROM prediction ORDER BY plan_id IS NULL, plan_id, gpus').fetchall()
    ids = [r[2] for r in rows if r[2] is not None]
    if len(set(ids)) != len(ids):
        sys.exit('# ' + path + ': a plan twice')
    return [[r[2:] for r in rows]] + [db.execute(sql).fetchall() for sql in (
        'SELECT reason, count FROM rejection ORDER BY reason',
        'SELECT stage, component, bytes FROM memory ORDER BY 1, 2, 3',
        'SELECT kind, hash FROM input ORDER BY kind')]
whole = study('whole.db')
for path in sys.argv[1:]:
    for name, a, b in zip(('rows', 'rejections', 'memory', 'inputs'), whole, study(path)):
        if a != b:
            sys.exit('# %s: other %s: %d against %d' % (path, name, len(b), len(a)))
PY
if command -v python3 >/dev/null; then
    same_study() { python3 same.py "$@"; }
    rows_in() { python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM prediction").fetchone()[0])' "$1"; }
else
    same_study() { echo '# rows not compared: no python3'; }
    rows_in() { echo 1; }
fi

sweep whole.db -j 1 >whole.txt || echo '# the reference failed'
ok 'the reference has rows' [ "$(rows_in whole.db)" -gt 100 ]
sweep threads.db -j 3 >threads.txt
ok '3 threads: the same table' cmp whole.txt threads.txt
ok '3 threads: the same rows' same_study threads.db

# Killed again and again at random moments, then resumed to the end.
kills=4
[ -n "$TRAINYARD_LONG" ] && kills=20
i=0
sound=true
while [ $i -lt $kills ]; do
    i=$((i + 1))
    run=exec sweep killed.db --resume -j 2 >/dev/null 2>&1 &
    sleep "0.$(awk "BEGIN { srand($$ + $i); printf \"%02d\", 1 + rand() * 25 }")"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    [ -e killed.db ] || continue
    [ "$(python3 -c 'import sqlite3
print(sqlite3.connect("killed.db").execute("PRAGMA integrity_check").fetchone()[0])' 2>/dev/null ||
        echo ok)" = ok ] || sound=false
done
ok "killed $kills times: sound each time" $sound
sweep killed.db --resume >killed.txt
ok 'killed and resumed: the same table' cmp whole.txt killed.txt
ok 'killed and resumed: the same rows' same_study killed.db
sweep killed.db --resume >again.txt
ok 'resumed when all is done: the same table' cmp whole.txt again.txt
ok 'resumed when all is done: the same rows' same_study killed.db

# What a resumed sweep simulates is what the file lacks: it says what is known, and a file with
# every plan is read, not computed.
known=$(trainyard sweep $(echo "$arguments" | sed 's/--quiet//') --db killed.db --resume 2>&1 >/dev/null |
    sed -n 's/.* \([0-9]*\) rows are in killed.db already/\1/p')
ok 'the rows of the file are known' [ "$known" = "$(($(rows_in killed.db) - 2))" ]

# Ctrl-C keeps what is done.
sweep stopped.db -j 1 >/dev/null 2>stopped.err &
sleep 0.15
kill -INT $! 2>/dev/null
wait $!
status=$?
ok 'interrupted: the exit status is that of the signal, or it was done' \
    [ $status = 130 -o $status = 0 ]
ok 'interrupted: says where it goes on' sh -c "[ $status = 0 ] || grep -q resume stopped.err"
sweep stopped.db --resume >stopped.txt
ok 'interrupted and resumed: the same table' cmp whole.txt stopped.txt
ok 'interrupted and resumed: the same rows' same_study stopped.db

# Shards: whatever their number, and with one lost.
for n in 2 5; do
    i=0
    while [ $i -lt $n ]; do
        sweep "n$n-{shard}.db" --shard "$i/$n" -j 2 >/dev/null
        i=$((i + 1))
    done
    trainyard db merge "merged$n.db" "n$n"-?.db >/dev/null
    sweep "merged$n.db" --resume >"merged$n.txt"
    ok "$n shards: the same table" cmp whole.txt "merged$n.txt"
    ok "$n shards: the same rows" same_study "merged$n.db"
done
trainyard db merge lost.db n5-0.db n5-1.db n5-3.db n5-4.db >/dev/null
sweep lost.db --resume >lost.txt
ok 'a lost shard is computed when the whole is resumed' cmp whole.txt lost.txt
ok 'a shard merged twice is counted once' sh -c \
    "trainyard db merge twice.db n2-0.db n2-1.db n2-0.db | grep -q 'left out'"
sweep twice.db --resume >/dev/null
ok '... and its rows and rejections are there once' same_study twice.db

# A what-if: a kept plan at its bound (fast points), and a search at each point.
whatif() { # whatif FILE [OPTIONS]
    file=$1
    shift
    $run trainyard whatif --model llama2-7b --cluster dgx-a100 --gpus 16 --gbs 64 --seq 4096 --tp 2 \
        --set cluster.network.nic='50..400+10 Gb/s' --quiet --db "$file" "$@"
}
set -- --keep-plan --rung bound --set cluster.network.fabric=infiniband,roce \
    --set cluster.gpu.memory.bandwidth='1000..2000+50 GB/s'
for kind in kept searched; do
    [ $kind = searched ] && set -- --set plan.seq=2048,4096
    whatif "$kind.db" "$@" >"$kind.txt"
    run=exec whatif "$kind-killed.db" "$@" >/dev/null 2>&1 &
    sleep 0.1
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    whatif "$kind-killed.db" "$@" --resume >"$kind-killed.txt"
    ok "whatif, $kind plan, killed and resumed: the same answer" cmp $kind.txt $kind-killed.txt
    for i in 0 1 2; do
        whatif "$kind-{shard}.db" "$@" --shard $i/3 >/dev/null
    done
    trainyard db merge $kind-merged.db $kind-?.db >/dev/null
    whatif $kind-merged.db "$@" --resume >$kind-merged.txt
    ok "whatif, $kind plan, three shards: the same answer" cmp $kind.txt $kind-merged.txt
    cp $kind.db whole.db
    ok '... and the same rows' same_study $kind-killed.db $kind-merged.db
done
set --

# Where the number of the shard comes from.
shard_of() { # shard_of WHAT VARIABLES...: runs shard 1 of 2 by the environment
    what=$1
    shift
    rm -f env.db
    ok "$what" sh -c "env $* trainyard sweep $arguments --db env.db --shard $option |
        grep -q 'shard 1/2'"
}
option=auto
shard_of 'TRAINYARD_SHARD' TRAINYARD_SHARD=1/2
shard_of 'a Slurm array from 4 in steps of 3' SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=4 \
    SLURM_ARRAY_TASK_STEP=3 SLURM_ARRAY_TASK_COUNT=2
shard_of 'Open MPI' OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=1
shard_of 'PMI' PMI_RANK=1 PMI_SIZE=2
shard_of 'srun' SLURM_PROCID=1 SLURM_NTASKS=2
option=auto/2
shard_of 'a Kubernetes index, which needs the number' JOB_COMPLETION_INDEX=1

refuses() { # refuses WHAT PATTERN COMMAND...
    what=$1
    pattern=$2
    shift 2
    "$@" >/dev/null 2>refused.err
    status=$?
    ok "$what" sh -c "[ $status = 2 ] && grep -q \"$pattern\" refused.err || { cat refused.err; false; }"
}
refuses 'a shard that is not there' 'from 0 to n - 1' sweep x.db --shard 2/2
refuses 'no index anywhere' 'the environment has none' sweep x.db --shard auto
JOB_COMPLETION_INDEX=1
export JOB_COMPLETION_INDEX
refuses 'an index without a number' 'give --shard auto/n' sweep x.db --shard auto
unset JOB_COMPLETION_INDEX
refuses '--shard without a file' 'needs --db' trainyard sweep $arguments --shard 0/2
refuses '--resume without a file' 'needs --db' trainyard sweep $arguments --resume
refuses 'resuming with other arguments' 'differs in the arguments' sweep n2-0.db --resume --pp 2
trainyard sweep $arguments --pp 4 --layout even,balanced --db layouts.db >/dev/null
refuses 'resuming with another list of layouts' 'differs in the arguments' \
    trainyard sweep $arguments --pp 4 --layout even --db layouts.db --resume
refuses 'resuming with another model' 'differs in the model' \
    trainyard sweep $arguments --model llama2-13b --db n2-0.db --resume
refuses 'resuming another kind of file' 'not a trainyard study' \
    trainyard sweep $arguments --db same.py --resume
trainyard sweep $arguments --tp 1 --db other.db >/dev/null
refuses 'merging other arguments' 'arguments' trainyard db merge x2.db n2-0.db other.db
ok '... leaves no file behind' [ ! -e x2.db ]
trainyard sweep $arguments --set cluster.network.latency=20us --db other2.db >/dev/null
refuses 'merging another cluster' 'cluster' trainyard db merge n2-0.db other2.db
refuses 'merging a file into itself' 'to merge into' trainyard db merge n2-0.db n2-0.db
refuses 'merging nothing' 'is used as' trainyard db merge x2.db

# ---- the job files, as their schedulers run them ---------------------------------------------
mkdir slurm k8s
last=$(sed -n 's/^#SBATCH --array=0-//p' "$root/examples/slurm-array.sh")
cd slurm || exit 1
for i in $(seq 0 "$last"); do
    SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_STEP=1 \
        SLURM_ARRAY_TASK_COUNT=$((last + 1)) SLURM_CPUS_PER_TASK=2 SLURM_PROCID=0 SLURM_NTASKS=1 \
        sh "$root/examples/slurm-array.sh" >/dev/null 2>&1 || echo "# task $i failed"
done
cd ..
trainyard db merge slurm.db slurm/study-?.db >/dev/null
sweep slurm.db --resume >slurm.txt
ok 'examples/slurm-array.sh: its tasks give the table' cmp whole.txt slurm.txt

yaml=$root/examples/k8s-indexed-job.yaml
last=$(($(sed -n 's/^  completions: //p' "$yaml") - 1))
command=$(awk '/ command:$/ { on = 1; next } on && $1 == "-" { printf "%s ", $2; next } { on = 0 }' "$yaml")
cd k8s || exit 1
for i in $(seq 0 "$last"); do
    JOB_COMPLETION_INDEX=$i $command >/dev/null 2>&1 || echo "# index $i failed"
done
cd ..
trainyard db merge k8s.db k8s/study-?.db >/dev/null
sweep k8s.db --resume >k8s.txt
ok 'examples/k8s-indexed-job.yaml: its pods give the table' cmp whole.txt k8s.txt

if ! command -v sbatch >/dev/null; then
    skip 'the array under Slurm itself' 'no sbatch: Debian package slurm-wlm'
elif ! timeout 5 sinfo -h >/dev/null 2>&1; then
    skip 'the array under Slurm itself' 'no running slurmctld answers sinfo'
else
    mkdir real
    cd real || exit 1
    sbatch --wait --export=ALL "$root/examples/slurm-array.sh" >/dev/null 2>&1
    cd ..
    trainyard db merge real.db real/study-?.db >/dev/null
    sweep real.db --resume >real.txt
    ok 'the array under Slurm itself' cmp whole.txt real.txt
fi
cd "$root" || exit 1
done_tests
