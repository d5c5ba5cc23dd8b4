#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# calibrate runs from outside: flags, tables and logs; the site file goes back into predict.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $trainyard = ($ENV{B} // 'build') . '/trainyard';
my $dir = tempdir(CLEANUP => 1);
my $plan = '--model llama3-8b --cluster dgx-h100 --stack megatron-core --gpus 16 --tp 2 --mbs 1 '
    . '--gbs 64 --seq 8192';

sub run_command {
    my ($args) = @_;
    my $text = `$trainyard $args 2>$dir/err`;
    open my $file, '<', "$dir/err" or die;
    local $/;
    return ($? >> 8, $text, scalar <$file> // '');
}

sub json {
    my ($args) = @_;
    my ($status, $text, $err) = run_command("$args --json");
    is($status, 0, $args) or diag $err;
    return eval { decode_json($text) } // {};
}

sub spew {
    my ($name, $text) = @_;
    open my $file, '>', "$dir/$name" or die;
    print $file $text;
    close $file;
    return "$dir/$name";
}

# ---- one run by flags ------------------------------------------------------------------------
my $before = json("predict $plan")->{step_time_s};
my $slow = 1.1 * $before;
my $one = json("calibrate runs $plan --step-time '$slow s' --out $dir/tokyo.json");
is($one->{used}, 1, 'one run is enough');
cmp_ok(abs($one->{runs}[0]{predicted_no_site} / $before - 1), '<', 1e-9, 'without site: as predict');
cmp_ok($one->{site}{compute_ratio}, '>', 1, 'the site is slower');
cmp_ok($one->{after}{median_ape}, '<', $one->{before}{median_ape}, 'and the run is nearer');
my $after = json("predict $plan --site $dir/tokyo.json");
cmp_ok(abs($after->{step_time_s} / $one->{runs}[0]{predicted} - 1), '<', 1e-9,
    'predict --site FILE gives the same time');
my $rate = 64 * 8192 / $slow;
my $same = json("calibrate runs $plan --tokens-per-s $rate");
cmp_ok(abs($same->{site}{compute_ratio} - $one->{site}{compute_ratio}), '<', 1e-9,
    'tokens/s are the same as the step time');
cmp_ok(scalar @{$one->{next}}, '>', 0, 'a next run is named');
cmp_ok($one->{next}[0]{sd_then}, '<', $one->{next}[0]{sd_now}, 'that tells more');
my (undef, $text) = run_command("calibrate runs $plan --step-time '$slow s'");
like($text, qr/time of compute\s+x 1\.\d+/, 'text: the ratios');
like($text, qr/next runs that would tell most/, 'text: the next run');
like($text, qr/constants that moved.*profiles\/preset-hopper/s, 'text: the constants that moved');
my ($gemm) = grep { $_->{constant} eq 'device.gemm_ratio_16' } @{$one->{constants}};
is($gemm->{of}, 'profiles/preset-hopper', 'a constant names its file');
cmp_ok($gemm->{after}, '<', $gemm->{before}, 'a slower run lowers the rate of GEMMs');
cmp_ok($gemm->{sd_after}, '<', $gemm->{sd_before}, 'and leaves less open');
open my $tokyo, '<', "$dir/tokyo.json" or die;
my $ratios = decode_json(join '', <$tokyo>)->{site};
my $bare = spew('bare.json', encode_json({site => $ratios}));
cmp_ok(json("predict $plan --site $bare")->{step_time_s} / $after->{step_time_s}, '<', 1 - 1e-4,
    'the ratios alone are not all of it');
unlike((run_command("sweep $plan --pp 1,2 --site $dir/tokyo.json"))[2], qr/site/, 'sweep takes the file');

# ---- table and log ---------------------------------------------------------------------------
my $header = 'id,model,cluster,stack,gpus,tp,pp,mbs,gbs,seq_len,step_time_s';
my $table = spew('mine.csv', join("\n", $header,
        "a,llama3-8b,dgx-h100,megatron-core,16,2,1,1,64,8192,$slow",
        'b,llama3-8b,dgx-h100,megatron-core,16,2,1,1,64,8192,',
        'c,no-such-model,dgx-h100,megatron-core,16,2,1,1,64,8192,3', ''));
my $from_table = json("calibrate runs $table");
is($from_table->{used}, 1, 'a run without a time and one without a shape are left out');
like($from_table->{runs}[1]{refused}, qr/step time/, 'the first with its reason');
like($from_table->{runs}[2]{refused}, qr/layers/, 'the second too');
# The three ratios of the table's row and of the flags: the rules of the table fill switches that
# the flags leave to the stack, so only the direction is the same.
cmp_ok($from_table->{site}{compute_ratio}, '>', 1, 'the same site, slower');
my $ms = 1000 * $slow;
my $log = spew('run.log', join('', map {
            " iteration $_/ 20 | elapsed time per iteration (ms): $ms | global batch size: 64 |\n"
        } 5 .. 12));
my $from_log = json("calibrate runs $log $plan");
cmp_ok(abs($from_log->{site}{compute_ratio} - $one->{site}{compute_ratio}), '<', 1e-6,
    'a log with the plan of the flags');
is_deeply(json("calibrate runs $table -j 1"), json("calibrate runs $table -j 2"),
    'the same on one thread and on two');
my $both = json("calibrate runs $log $table $plan");
is($both->{used}, 2, 'files of both kinds');

# ---- refusals --------------------------------------------------------------------------------
for my $case (
    ['calibrate runs', qr/needs FILE/],
    ["calibrate runs $log", qr/--model: not given/],
    ["calibrate runs $dir/none.csv", qr/none\.csv/],
    ["calibrate runs $plan --step-time -3", qr/--step-time/],
    ["calibrate runs $plan --step-time fast", qr/--step-time/],
    ["calibrate runs $plan --step-time 3 --tokens-per-s 5", qr/not together/],
    ["calibrate runs $plan --tokens-per-s 0", qr/above 0/],
    ["calibrate runs --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 3 --step-time '3 s'", qr/none/],
    ["predict $plan --site $dir/none.json", qr/none\.json/])
{
    my ($status, undef, $err) = run_command($case->[0]);
    is($status, 2, "$case->[0]: bad input");
    like($err, $case->[1], 'says why');
}
like((run_command("calibrate import $log --step-time 3 --tp 2"))[2], qr/unused: --step-time.*unused: --tp/s,
    'import says what it does not read');
# Far from the 3.4 s of the model: another machine or another plan. Near it: a site.
like((run_command("calibrate runs $plan --step-time 60s"))[1],
    qr/took \d+ times what is predicted, which no site explains/, 'a run far from the model is told');
unlike((run_command("calibrate runs $plan --step-time 4s"))[1], qr/which no site explains/,
    'a run near it is not');
done_testing();
