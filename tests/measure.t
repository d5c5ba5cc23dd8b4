#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# calibrate measure from outside: records, budget kept, resuming, what is refused. No time is judged.
use strict;
use warnings;
use Cwd qw(getcwd);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $trainyard = getcwd() . '/' . ($ENV{B} // 'build') . '/trainyard';
$trainyard = "$ENV{B}/trainyard" if ($ENV{B} // '') =~ m{^/};
my $folder = tempdir(CLEANUP => 1);

sub run {
    my $command = join ' ', map { "'$_'" } @_;
    my $out = `$trainyard $command 2>$folder/err`;
    my $status = $? >> 8;
    open my $err, '<', "$folder/err" or die;
    return ($status, $out, join '', <$err>);
}
sub records { my ($name) = @_; open my $f, '<', "$folder/$name" or return (); return map { decode_json($_) } <$f> }
sub measure { return run('calibrate', 'measure', '--out', "$folder/$_[0]", @_[1 .. $#_]) }
sub key { my ($r) = @_; return join ' ', $r->{kind}, map { "$_=$r->{parameters}{$_}" } sort keys %{ $r->{parameters} } }

# ---- processor ---------------------------------------------------------------------------------
my ($status, $out, $err) = measure('cpu.jsonl', '--budget', '1s');
is($status, 0, 'a second of a processor') or diag $err;
my @first = records('cpu.jsonl');
# The kinds take turns, however few points a busy machine gets through in it.
my %turn = map { $_->{kind} => 1 } @first[0 .. ($#first < 2 ? $#first : 2)];
is(scalar keys %turn, @first < 3 ? scalar @first : 3, 'a short budget has some of each kind');
my @broken = grep {
    my $v = $_->{values};
    !($v->{time_s} > 0 && $v->{samples} >= 3 && $v->{time_p10_s} <= $v->{time_s} * 1.0000001
        && $v->{time_s} <= $v->{time_p90_s} * 1.0000001)
} @first;
is(scalar @broken, 0, 'each has a median of three samples or more between its quantiles');
is(scalar(grep { $_->{hardware}{device} ne 'cpu' || !$_->{software}{blas} || !$_->{hardware}{mem_bytes} } @first), 0,
    'each says what it was measured on');

# Half a line, as a killed run leaves it: it goes, and what is there is not measured again.
open my $f, '>>', "$folder/cpu.jsonl" or die;
print $f '{"kind": "gemm", "para';
close $f;
($status, $out, $err) = measure('cpu.jsonl', '--budget', '1s', '--resume');
is($status, 0, 'resumed') or diag $err;
my @all = records('cpu.jsonl');
cmp_ok(scalar @all, '>=', scalar @first, 'nothing is lost');
my %seen;
$seen{ key($_) }++ for @all;
is(scalar(grep { $_ > 1 } values %seen), 0, 'nothing is measured twice');
like($out, qr/ were there/, 'and it says so');

($status, $out, $err) = run('calibrate', 'fit', '--records', "$folder/cpu.jsonl", '--out', "$folder/p.json");
is($status, 0, 'the records fit into a profile') or diag $err;
unlike($out, qr/without .* above 0/, 'no record lacks what the fit needs');

# ---- shapes of a model -------------------------------------------------------------------------
# A layer of h = 256, 4 heads of 64, f = 1024 with 128 tokens: closed forms of its GEMMs.
open $f, '>', "$folder/gpt.json" or die;
print $f '{"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 512, "n_positions": 128}';
close $f;
($status, $out, $err) = measure('model.jsonl', '--budget', '2s', '--model', "$folder/gpt.json", '--seq', 128,
    '--mbs', 1, '--ranks', 1);
is($status, 0, 'the shapes of a model') or diag $err;
my %gemms = map { join(' ', @{ $_->{parameters} }{qw(m n k direction)}) => 1 } grep { $_->{kind} eq 'gemm' } records('model.jsonl');
my %wanted;
for my $nk ([768, 256], [256, 256], [1024, 256], [256, 1024], [512, 256]) {
    my ($n, $k) = @$nk;
    $wanted{$_} = 1 for "128 $n $k forward", "128 $k $n dgrad", "$k $n 128 wgrad";
}
is(scalar(grep { !$wanted{$_} } keys %gemms), 0, 'no GEMM but those of the model');
cmp_ok(scalar(keys %gemms), '>', 0, 'and some of them');
is(scalar(grep { $_->{kind} eq 'collective' } records('model.jsonl')), 0, 'one rank has no collectives');

# ---- storage -----------------------------------------------------------------------------------
($status, $out, $err) = measure('disk.jsonl', '--device', 'storage', '--budget', '1s', '--folder', $folder);
is($status, 0, 'storage') or diag $err;
my @disk = records('disk.jsonl');
is(scalar(grep { $_->{kind} eq 'storage' } @disk), 13, 'reads and writes by 1, 2, 4 clients, and fsync');
is(join(' ', map { $_->{parameters}{step} } grep { $_->{kind} eq 'loader' } @disk), 'synthetic cached cold',
    'the three steps of a loader');
is(scalar(grep { -e } glob "$folder/.trainyard-measure*"), 0, 'its file is gone');
($status, $out, $err) = measure('x.jsonl', '--device', 'storage', '--folder', "$folder/none");
is($status, 2, 'no such folder');
like($err, qr/none/, 'and its name');
SKIP: {
    skip 'no /dev/shm', 2 unless -w '/dev/shm';
    ($status, $out, $err) = measure('shm.jsonl', '--device', 'storage', '--budget', '1s', '--folder', '/dev/shm');
    is($status, 0, 'a file system in memory') or diag $err;
    my @flagged = grep { grep { $_ eq 'page_cache' } @{ $_->{flags} } } records('shm.jsonl');
    ok(@flagged == 0 || $err =~ /no direct I\/O/, 'without direct I/O it says so');
}

# ---- refused -----------------------------------------------------------------------------------
for my $case (
    [2, qr/cpu, storage, cuda/, '--device', 'tpu'],
    [2, qr/hipblaslt-bench and rccl-tests.*calibrate import/s, '--device', 'rocm'],
    [2, qr/hipblaslt-bench/, '--device', 'amd'],
    [2, qr/--budget/, '--budget', 'soon'],
    [2, qr/--budget/, '--budget', '0s'],
    [2, qr/libnone\.so/, '--blas', 'libnone.so'],
    [2, qr/ranks/, '--ranks', '65'],
    [1, qr/none\/x/, '--budget', '1s', '--out', "$folder/none/x"],
) {
    my ($want, $like, @args) = @$case;
    ($status, $out, $err) = run('calibrate', 'measure', '--out', "$folder/x.jsonl", @args);
    is($status, $want, "@args: status");
    like($err, $like, 'says why');
}
($status, $out, $err) = run('calibrate', 'measure');
is($status, 2, 'without --out');
($status, $out, $err) = run('calibrate', 'import', "$folder/cpu.jsonl", '--device', 'cpu', '--resume');
like($err, qr/unused: --device.*unused: --resume/s, 'options of measure elsewhere are reported');
done_testing();
