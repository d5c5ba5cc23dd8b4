#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# trainyard calibrate fit and show, and what predict, comm and validate make of the profile.
use strict;
use warnings;
use lib 'tests';
use Command qw($folder run);
use JSON::PP;
use Test::More;

sub json { my ($status, $out) = run(@_); return $status == 0 ? decode_json($out) : {} }
sub write_file { my ($name, @lines) = @_; open my $f, '>', "$folder/$name" or die; print $f @lines; close $f }
sub record {
    my ($kind, $parameters, $time_s) = @_;
    return encode_json({ kind => $kind, parameters => $parameters, values => { time_s => $time_s } }) . "\n";
}

# llama3-8b, tp 1, 4096 tokens: fc2 is (4096, 4096, 14336), fc1 (4096, 28672, 4096), forward.
my @lines;
for my $m (1024, 2048, 4096, 8192) {
    for my $nk ([4096, 14336], [28672, 4096], [6144, 4096], [4096, 4096]) {
        my ($n, $k) = @$nk;
        push @lines, record('gemm', { m => $m, n => $n, k => $k, dtype => 'bf16', direction => $_ },
            2 * $m * $n * $k / 500e12 + 5e-6) for qw(forward dgrad wgrad);
    }
}
push @lines, record('memory', { function => 'norm', moved_bytes => $_ }, 4e-6 + $_ / 2.9e12)
    for map { 1e4 * 2**$_ } 0 .. 20;
push @lines, record('collective', { op => 'all_reduce', size_bytes => 1024 * 2**$_, ranks => 8 },
    20e-6 + 1.75 * 1024 * 2**$_ / 400e9) for 0 .. 22;
push @lines, record('storage', { op => 'read', pattern => 'sequential' }, 1); # lacks its value
write_file('r.jsonl', @lines);

my ($status, $out, $err) = run('calibrate', 'fit', '--records', "$folder/r.jsonl", '--out',
    "$folder/p.json", '--cluster', 'dgx-h100');
is($status, 0, 'calibrate fit');
like($out, qr/device\.gemm_ratio_16 +0\.\d+/, 'prints constants');
like($out, qr/prior: fewer than three records/, 'those that stay priors');
like($out, qr/dropped\n +1  storage without bandwidth_bytes_per_s above 0/, 'what was dropped and why');
my $fit = json('calibrate', 'fit', '--records', "$folder/r.jsonl", '--out', "$folder/q.json",
    '--cluster', 'dgx-h100', '--json');
is_deeply([sort keys %{ $fit->{_fit}{constants}[0] }],
    [sort qw(name value unit min max prior source state records informed median_error p90_error)],
    'what is told of a constant');
is($fit->{fitted}, 'gemm,memory,collectives', 'what is fitted');
is(scalar @{ $fit->{measured}{gemm} }, 48, 'each shape is kept');

my @plan = qw(--model llama3-8b --cluster dgx-h100 --gpus 8 --gbs 64 --seq 4096 --sharding zero3);
my $preset = json('predict', @plan, '--json');
is($preset->{from}{gemm}{preset}, 1, 'without a profile: preset');
my $own = json('predict', @plan, '--profile', "$folder/p.json", '--json');
cmp_ok($own->{from}{gemm}{measured}, '>', 0.3, 'with it: shapes that were measured');
cmp_ok($own->{from}{gemm}{measured} + $own->{from}{gemm}{interpolated} + $own->{from}{gemm}{fitted}, '>',
    0.999, 'and none from presets');
cmp_ok($own->{from}{memory}{interpolated}, '>', 0.9, 'memory between points of its curve');
is($own->{from}{attention}{preset}, 1, 'attention was not measured');
isnt($own->{step_time_s}, $preset->{step_time_s}, 'the step time is another');
my ($note) = grep { $_->{field} eq 'attention' } @{ $own->{uncalibrated} };
like($note->{reason}, qr/no record/, 'which is noted');
($note) = grep { $_->{field} eq 'collectives' } @{ $own->{extrapolated} };
like($note->{value}, qr/^\d+ %$/, 'and the collectives that no table is of');
($status, $out) = run('predict', @plan, '--profile', "$folder/p.json");
like($out, qr/^  from +gemm measured \(\d+ %\), attention preset, memory interpolated/m, 'in words');
($status, $out, $err) = run('predict', @plan, '--set', 'cluster.gpu=h200-sxm', '--profile', "$folder/p.json");
like($err, qr/unused: .*its tables, which are of a h100-sxm/, 'another GPU: its tables are not used, and that is said');
my $swept = json('sweep', '--model', 'llama3-8b', '--cluster', 'dgx-h100', '--gpus', 8, '--gbs', 64,
    '--seq', 4096, '--tp', 1, '--pp', 1, '--profile', "$folder/p.json", '--top', 1, '--json');
ok(ref $swept && %$swept, 'sweep takes it too');

# dgx-h100 of the table of records: 20 us + 1.75 S / 400 GB/s
my $comm = json(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --sizes 1MiB --json),
    '--profile', "$folder/p.json");
cmp_ok(abs($comm->{sizes}[0]{time_s} / (20e-6 + 1.75 * 1048576 / 400e9) - 1), '<', 1e-6,
    'comm --profile: the own table goes first');
is($comm->{sizes}[0]{source}, 'records', 'and is named');
$comm = json(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --sizes 1MiB --json), '--table',
    "$folder/r.jsonl");
is($comm->{sizes}[0]{source}, 'records', 'comm --table');
$comm = json(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --sizes 1MiB --json), '--table',
    'data/micro/nccl/h100-8x_nvlink_allreduce_aws.csv');
is($comm->{sizes}[0]{origin}, 'table', 'a table in the form of another tool');
($status, $out, $err) = run(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --table), "$folder/none");
is($status, 2, 'no such table');
write_file('gemm.jsonl', $lines[0]);
($status, $out, $err) = run(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --table), "$folder/gemm.jsonl");
is($status, 2, 'a table of something else');
like($err, qr/no table of a collective/, 'says so');

($status, $out, $err) = run('calibrate', 'fit', '--records', "$folder/r.jsonl", '--out', "$folder/u.json");
is($status, 0, 'without a cluster');
like($out, qr/the machine is not known: its peaks are/, 'the machine is made of the records');
open my $u, '<', "$folder/u.json" or die;
my $unknown = decode_json(join '', <$u>);
write_file('machine.json', encode_json($unknown->{_fit}{machine}));
my $there = json(qw(predict --model llama3-8b --gpus 8 --gbs 8 --seq 512 --measured --json --cluster),
    "$folder/machine.json", '--profile', "$folder/u.json");
cmp_ok($there->{from}{gemm}{preset}, '<', 0.001, 'which is in the profile, for predict --cluster');
($status, $out, $err) = run('calibrate', 'fit', '--records', "$folder/r.jsonl");
is($status, 2, 'no --out');
($status, $out, $err) = run('calibrate', 'fit', '--out', "$folder/x.json");
is($status, 2, 'no records');
write_file('bad.jsonl', "{\"kind\": \"gemm\", ");
($status, $out, $err) = run('calibrate', 'fit', '--records', "$folder/bad.jsonl", '--out', "$folder/x.json");
is($status, 2, 'damaged records');
like($err, qr/bad\.jsonl line 1/, 'with file and line');
ok(!-e "$folder/x.json", 'and no profile is written');

($status, $out, $err) = run('calibrate', 'show', "$folder/p.json", '--out', "$folder/plots");
is($status, 0, 'calibrate show');
ok(-s "$folder/plots/fit-$_.gp" && -s "$folder/plots/fit-$_.tsv" && -s "$folder/plots/residuals-$_.gp",
    "$_: script and data") for qw(gemm memory collectives);
ok(!-e "$folder/plots/fit-attention.gp", 'nothing of what was not measured');
SKIP: {
    skip 'no gnuplot', 1 if system('gnuplot --version >/dev/null 2>&1') != 0;
    ok(-s "$folder/plots/fit-gemm.svg" && -s "$folder/plots/residuals-memory.png", 'drawn');
}
($status, $out, $err) = run('calibrate', 'show', 'data/profiles/common.json', '--out', "$folder/plots");
is($status, 2, 'a profile of no fit');
done_testing();
