#!/bin/sh
# SPDX-License-Identifier: MIT
# The closed loop on a GPU, in one command: builds, checks the own kernels, runs compute-sanitizer on
# short versions of all, measures within 6 minutes, fits, predicts the step of a small GPT, and only then
# trains it with this machine's PyTorch and prints predicted against measured.
#
#   sh tests/gpu/run.sh          exit status 0: done, or "waived" without a GPU
#
# BUDGET_S: seconds of measuring (300). WORK: where files stay (default: a folder that is removed).
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
BUDGET_S=${BUDGET_S:-300}

waived() { # waived WHY: the rest cannot be done here
    echo "waived: $*"
    exit 0
}
step() { printf '\n== %s\n' "$*"; }

command -v nvidia-smi >/dev/null 2>&1 || waived 'no nvidia-smi, so no NVIDIA driver'
nvidia-smi -L 2>/dev/null | grep -q '^GPU 0' || waived 'nvidia-smi finds no GPU'
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || waived 'no nvcc'
if [ -z "${WORK:-}" ]; then
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"

step 'build, for this GPU alone'
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 | tr -d '. ')
make -s -j"$(nproc)" CUDA=1 CUDA_ARCHS="$arch" NVCC="$nvcc" B="$B"
nvidia-smi -L
"$B"/trainyard version

step 'own kernels against references'
"$B"/trainyard-measure --check

step 'compute-sanitizer on short versions of every kernel'
sanitizer=$(command -v compute-sanitizer || echo "$(dirname "$nvcc")/compute-sanitizer")
if [ -x "$sanitizer" ]; then
    for tool in memcheck racecheck synccheck; do
        "$sanitizer" --tool "$tool" --error-exitcode 9 "$B"/trainyard-measure --check
    done
    "$sanitizer" --tool memcheck --error-exitcode 9 "$B"/trainyard-measure --brief --budget 60 \
        --out "$WORK/brief.jsonl"
else
    echo 'waived: no compute-sanitizer'
fi

# The model that is predicted and then trained; one place for both.
layers=8 hidden=2048 heads=16 seq=2048 mbs=4 vocab=32768
cat >"$WORK/gpt.json" <<JSON
{"model_type": "gpt2", "n_layer": $layers, "n_embd": $hidden, "n_head": $heads, "n_positions": $seq,
 "vocab_size": $vocab}
JSON

step "measure for $BUDGET_S s: the shapes of the model, then the grid"
"$B"/trainyard calibrate measure --device cuda --budget "$((BUDGET_S / 2))s" --out "$WORK/r.jsonl" \
    --model "$WORK/gpt.json" --seq "$seq" --mbs "$mbs"
"$B"/trainyard calibrate measure --device cuda --budget "$((BUDGET_S / 2))s" --out "$WORK/r.jsonl" --resume

step 'fit'
"$B"/trainyard calibrate fit --records "$WORK/r.jsonl" --out "$WORK/p.json"
"$B"/trainyard detect --out "$WORK/cluster.json" >"$WORK/detect.txt" 2>&1 || cat "$WORK/detect.txt"
[ -s "$WORK/cluster.json" ] ||
    perl -MJSON::PP -e 'local $/; print encode_json(decode_json(<>)->{_fit}{machine})' "$WORK/p.json" \
        >"$WORK/cluster.json"

step 'predict, before anything was trained'
"$B"/trainyard predict --model "$WORK/gpt.json" --cluster "$WORK/cluster.json" --profile "$WORK/p.json" \
    --stack ddp --gpus 1 --tp 1 --pp 1 --mbs "$mbs" --gbs "$mbs" --seq "$seq" --precision bf16 \
    --sharding none --measured --json >"$WORK/predicted.json"
predicted=$(perl -MJSON::PP -e 'local $/; printf "%.6g", decode_json(<>)->{step_time_s}' "$WORK/predicted.json")
echo "predicted: $predicted s"

step 'train it with PyTorch'
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
    waived 'no PyTorch that sees the GPU: nothing to compare with (PYTHON names another python)'
measured=$("$python" tests/gpu/train.py "$layers" "$hidden" "$heads" "$seq" "$mbs" "$vocab")

step 'predicted against measured'
awk -v p="$predicted" -v m="$measured" 'BEGIN {
    printf "predicted %.2f ms, measured %.2f ms, error %+.1f %%\n", 1e3 * p, 1e3 * m, 100 * (p / m - 1)
}'
