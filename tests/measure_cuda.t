#!/bin/sh
# SPDX-License-Identifier: MIT
# Measuring CUDA devices where there are none: said, exit status 4, and everything else goes on.
. tests/tap.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A trainyard with nothing beside it, and along PATH nothing, or a program that tells how it was called.
cp "$trainyard" "$work/trainyard"
mkdir "$work/bin"
cat >"$work/bin/trainyard-measure" <<'SH'
#!/bin/sh
echo "$@" >"$TOLD"
while [ $# -gt 0 ]; do
    [ "$1" != --shapes ] || cp "$2" "$TOLD.shapes"
    shift
done
exit 4
SH
chmod +x "$work/bin/trainyard-measure"
TOLD=$work/told
export TOLD
measure() { "$work/trainyard" calibrate measure --device cuda --out "$work/r.jsonl" "$@" 2>"$work/err"; }
status_is() { # status_is WANTED COMMAND...
    wanted=$1
    shift
    status=0
    "$@" || status=$?
    [ "$status" -eq "$wanted" ]
}

if [ -n "$(command -v trainyard-measure || true)" ]; then
    skip 'not built' 'trainyard-measure is installed'
else
    ok 'not built: exit status 4' status_is 4 measure
    ok 'it says how to build it' grep -q 'make CUDA=1' "$work/err"
    ok 'trainyard version says it too' sh -c "'$work/trainyard' version | grep -q '^cuda .*no trainyard-measure'"
fi
PATH=$work/bin:$PATH
export PATH
ok 'its exit status is passed on' status_is 4 measure --budget 2min --resume
measure --blas libx.so || true
ok 'an option of other devices is reported' grep -q 'unused: --blas' "$work/err"
measure --budget 2min --resume || true
ok 'so are the options' grep -qx -- "--budget 120 --out $work/r.jsonl --resume" "$work/told"
# One layer of llama3-8b, 4096 tokens: fc1 is gate and up, 28672 wide.
ok 'with a model' status_is 4 measure --model llama3-8b --seq 4096 --mbs 1
ok 'its shapes are given' grep -qx 'gemm forward bf16 4096 28672 4096' "$work/told.shapes"
ok 'backward too' grep -qx 'gemm wgrad bf16 4096 28672 4096' "$work/told.shapes"
ok 'attention too' grep -qx 'attention bwd bf16 1 32 4096 128' "$work/told.shapes"
ok 'trainyard version names it' sh -c "'$work/trainyard' version | grep -q '^cuda *trainyard-measure'"

no_nvcc() { make -n CUDA=1 NVCC= B="$work/b" all 2>&1 | grep -q 'no nvcc: trainyard-measure'; }
ok 'CUDA=1 without nvcc says so and builds the rest' no_nvcc
if [ -x "$B/trainyard-measure" ] && ! nvidia-smi -L >/dev/null 2>&1; then
    ok 'the program itself, without a device: 4' status_is 4 "$B/trainyard-measure" --out "$work/x.jsonl" 2>/dev/null
    ok 'options are checked' status_is 2 "$B/trainyard-measure" --budget 2>/dev/null
else
    skip 'the program itself, without a device' 'not built (make CUDA=1), or there is a device'
fi
if nvidia-smi -L >/dev/null 2>&1; then
    skip 'tests/gpu/run.sh waives without a GPU' 'there is one'
else
    sh tests/gpu/run.sh >"$work/run" 2>&1 || echo "status $?" >>"$work/run"
    ok 'tests/gpu/run.sh waives without a GPU' grep -q '^waived: ' "$work/run"
    ok 'with exit status 0' sh -c "! grep -q '^status' '$work/run'"
fi
done_tests
