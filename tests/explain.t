#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# explain from outside: text, JSON, plot, exit status.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use List::Util qw(sum0);
use Test::More;

my $trainyard = ($ENV{B} // 'build') . '/trainyard';
my $dir = tempdir(CLEANUP => 1);
my @plan = qw(--model llama3-8b --cluster dgx-h100 --gpus 64 --tp 2 --pp 2 --gbs 64 --seq 4096);

sub run {
    my $args = join ' ', map { my $arg = $_; $arg =~ s/'/'\\''/g; "'$arg'" } @_;
    my $out = `$trainyard $args 2>$dir/stderr`;
    my $status = $? >> 8;
    open my $file, '<', "$dir/stderr" or die;
    local $/;
    return ($status, $out, scalar <$file>);
}

# ---- the answer ------------------------------------------------------------------------------
my ($status, $out) = run('explain', @plan);
is($status, 0, 'explain');
like($out, qr/^critical path/m, 'the path');
like($out, qr/flops +[\d.]+ % of the path +\+[\d.]+ % tokens/, 'resources');
like($out, qr/^  \S.* -> .*%.* (fits|tight|does not fit)/m, 'changes');
like($out, qr/^(change next: |no single change)/m, 'what to change next');
($status, $out) = run('explain', @plan, '--json');
my $e = decode_json($out);
my $predicted = decode_json((run('predict', @plan, '--json'))[1])->{step_time_s};
is($e->{prediction}{step_time_s}, $predicted, 'the step is that of predict');
my $sum = sum0 map { $_->{duration_s} } @{$e->{critical_path}};
ok(abs($sum - $predicted) < 1e-12 * $predicted, 'the segments sum to it') or diag("$sum $predicted");
is($e->{critical_path}[0]{waits_for}, 'nothing', 'the first waits for nothing');
my ($tp4) = grep { $_->{knob} eq 'tp' && $_->{to} eq '4' } @{$e->{changes}};
is($tp4->{step_time_s},
   decode_json((run('predict', @plan, '--tp', 4, '--json'))[1])->{step_time_s},
   'a change is the plan typed by hand');
ok(exists $e->{change_next}, 'JSON says what to change next');

# ---- files -----------------------------------------------------------------------------------
($status) = run('explain', @plan, '--out', "$dir/plots", '--trace', "$dir/trace.json", '-q');
is($status, 0, 'explain --out --trace');
ok(-s "$dir/plots/tornado.$_", "tornado.$_") for qw(tsv gp);
ok(-s "$dir/trace.json", 'the trace');

# ---- no answer -------------------------------------------------------------------------------
($status, $out) = run('explain', @plan, '--tp', 3);
is($status, 3, 'an illegal plan: status 3');
like($out, qr/no feasible plan/, 'and why');
my $err;
($status, $out, $err) = run('explain', @plan, '--max-events', 5, '--trace', "$dir/cut.json");
is($status, 1, 'a limit: status 1');
like($err, qr/limit of 5 events/, 'its message');
ok(-s "$dir/cut.json", 'and the partial trace');
done_testing();
