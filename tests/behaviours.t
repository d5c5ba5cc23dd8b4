#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Behaviours of published training runs: direction and size, not the last percent.
use strict;
use warnings;
use Cwd qw(abs_path);
use Test::More;

my $trainyard = abs_path(($ENV{B} // 'build') . '/trainyard');

# InternEvo's 7B on 4 x 100 Gb/s per node of 8 (published, 8 to 1,024 GPUs at 4M tokens a step: -44 %
# tokens/s/GPU with ZeRO-1 over all ranks, -11 % inside the node, its gradients overlapped).
sub lost {
    my @speed = map {
        my $args = "--gpus $_ --gbs 2048 --mbs 2 --seq 2048 --sharding zero1 --grad-dtype bf16";
        my $out = `$trainyard predict --model llama2-7b --cluster internevo-a100-4x100g $args @_ --json`;
        $out =~ /"tokens_per_s_per_gpu":\s*([\d.eE+]+)/ ? $1 : 0;
    } 8, 1024;
    return 1 - $speed[1] / $speed[0];
}
my ($all, $inside) = (lost('--overlap', 'none'), lost('--overlap', 'grad,param', '--shard-group', 8));
ok($all > 0.35 && $all < 0.55, sprintf('zero1 over all ranks of a slow fabric loses %.0f %%', 100 * $all));
ok($inside < $all - 0.08, sprintf('groups inside the node lose %.0f %%', 100 * $inside));

# MLPerf GPT-3 175B: 787 TFLOP/s/GPU on 512 H100 with 128 micro-batches, 585 on 10,752 with 8.
sub speed {
    my ($gpus, $gbs) = @_;
    my $args = "--tp 4 --pp 8 --vpp 12 --mbs 1 --seq 2048 --precision fp8 --stack mlperf";
    my $out = `$trainyard predict --model gpt3-175b --cluster dgx-h100 $args --gpus $gpus --gbs $gbs --json`;
    return $out =~ /"tokens_per_s_per_gpu":\s*([\d.eE+]+)/ ? $1 : 0;
}
my $few = speed(512, 2048);
my $kept = $few ? speed(10752, 2688) / $few : 0;
ok($kept > 0.67 && $kept < 0.82,
    sprintf('from 128 to 8 micro-batches %.0f %% of the speed are left (published 74)', 100 * $kept));
done_testing();
