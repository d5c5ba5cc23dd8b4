#!/bin/sh
# SPDX-License-Identifier: MIT
# --framework, export launch and predict --args on the command line; the planners of examples/.
. tests/tap.sh
dir=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-launch.XXXXXX")
trap 'rm -rf "$dir"' EXIT

plan='--model llama3-8b --cluster dgx-h100 --gpus 64 --tp 2 --pp 2 --gbs 256 --seq 4096 --recompute full'
for framework in megatron nemo torchtitan deepspeed; do
    $trainyard export launch --framework $framework $plan >"$dir/args"
    $trainyard predict --framework $framework $plan >"$dir/plan.out" 2>&1
    $trainyard predict --model llama3-8b --cluster dgx-h100 --args "$dir/args" >"$dir/args.out" 2>&1
    ok "$framework: the same prediction from the arguments" \
        sh -c "grep -q tokens/s '$dir/plan.out' && grep -v default '$dir/plan.out' >'$dir/a' &&
            grep -v default '$dir/args.out' >'$dir/b' && head -12 '$dir/a' >'$dir/c' &&
            head -12 '$dir/b' | cmp - '$dir/c'"
done

refuses() { # refuses WHAT PATTERN COMMAND...
    what=$1
    pattern=$2
    shift 2
    "$@" >/dev/null 2>"$dir/err"
    status=$?
    ok "$what" sh -c "[ $status = 2 ] && grep -q -e \"$pattern\" '$dir/err' || { cat '$dir/err'; false; }"
}
refuses 'a schedule that Megatron-LM lacks' 'schedule: Megatron-LM.*has no zb-v' \
    $trainyard export launch --framework megatron $plan --schedule zb-v --vpp 2
refuses 'another stack than that of the framework' 'torchtitan conflicts with --stack megatron-core' \
    $trainyard sweep $plan --framework torchtitan --stack megatron-core
refuses 'an unknown framework' 'is not one of' $trainyard sweep $plan --framework jax
refuses 'no framework' 'not given' $trainyard export launch $plan
refuses 'a plan twice' 'conflicts with --plan' \
    $trainyard predict --model llama3-8b --cluster dgx-h100 --args "$dir/args" --plan "$dir/args"
refuses 'a study that is not there' 'unable to open' \
    $trainyard export launch --framework megatron --from "$dir/none.db#1"

$trainyard export launch --model llama3-8b --cluster dgx-h100 --framework megatron --gpus 7 --tp 2 \
    >"$dir/out" 2>"$dir/illegal"
ok 'a plan that is not legal is not exported' [ $? -eq 3 ]
ok '... and the rule is named' grep -q 'not a multiple of tp.*legal: gpus: a multiple of 2' "$dir/illegal"

search='--model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096 --tp 2,4 --pp 1 --vpp 1 --mbs 1
    --sharding zero1,zero2,zero3 --quiet'
rejected() { $trainyard sweep $search "$@" | sed -n 's/^ *framework  *//p' | tr -d ,; }
# Megatron runs each of these values of sharding, torchtitan zero3 alone.
megatron=$(rejected --framework megatron)
torchtitan=$(rejected --framework torchtitan)
ok 'torchtitan drops more than Megatron' [ "${torchtitan:-0}" -gt "${megatron:-0}" ]
ok 'any drops nothing' [ -z "$(rejected --framework any --stack torchtitan)" ]
ok '--stack implies the framework in a search' \
    [ "$(rejected --stack torchtitan)" = "$torchtitan" ]
$trainyard predict $plan --framework torchtitan --offload optimizer >"$dir/out"
ok 'predict names the knob' grep -q 'torchtitan 0.2.2 cannot run this offload' "$dir/out"

$trainyard sweep $search --framework megatron --db "$dir/study.db" >/dev/null
$trainyard export launch --framework megatron --from "$dir/study.db#2" >"$dir/second"
ok 'the second best of a study' grep -q -e '--global-batch-size 64' "$dir/second"
refuses 'a plan that the study does not have' 'no feasible plan #99' \
    $trainyard export launch --framework megatron --from "$dir/study.db#99"

if command -v python3 >/dev/null && [ -z "$SANITIZE" ]; then
    LD_LIBRARY_PATH=$B python3 examples/planner.py "$B/libtrainyard-tools.so.0" >"$dir/planner"
    ok 'examples/planner.py: the best of its loop is that of a sweep' sh -c "
        $trainyard sweep --model llama3-8b --cluster dgx-h100 --stack megatron-core --gpus 64 \
            --gbs 256 --seq 4096 --tp 1,2,4,8 --pp 1,2,4 --vpp 1 --cp 1 --mbs 1 --recompute none \
            --top 1 --json --quiet | tr -d ' \n' | grep -q '\"tp\":1,\"pp\":1,' &&
        grep -q '^tp 1 pp 1 dp 64: [0-9]* tokens/s' '$dir/planner'"
else
    skip 'examples/planner.py' 'no python3, or a build with sanitizers'
fi
done_tests
