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
is($e->{critical_path}[0]{waits_for}, undef, 'the first waits for nothing');
is_deeply([@{$e->{critical_path}[2]{waits_for}}{qw(name rank stream)}],
          [@{$e->{critical_path}[1]}{qw(name rank stream)}], 'the others for the one before');
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

# ---- against a figure ------------------------------------------------------------------------
sub measured {
    my ($status, $out, $err) = run('explain', @plan, @_, '--json');
    is($status, 0, "explain @_") or diag($err);
    return eval { decode_json($out) } // {};
}
my $p = $e->{prediction};
my $tokens = 64 * 4096;
for my $figure (["2.5 s", 2.5], ["2500 ms", 2.5], [($tokens / 2.5 / 64) . ' tokens/s/GPU', 2.5],
                [($tokens / 2.5) . ' tok/s', 2.5],
                [100 * $p->{mfu} * $predicted / 2.5 . ' %', 2.5],
                ['MFU ' . 100 * $p->{mfu} * $predicted / 2.5 . '%', 2.5],
                [$p->{model_tflops_per_gpu} * $predicted / 2.5 . ' TFLOP/s/GPU', 2.5]) {
    my $gap = measured('--measured', $figure->[0])->{measured};
    ok(abs($gap->{measured_s} - $figure->[1]) < 1e-9, "... is $figure->[1] s") or diag($gap->{measured_s});
}
my $gap = measured('--measured', '2.5 s')->{measured};
ok(@{$gap->{candidates}} > 0 && $gap->{unexplained_pct} == 100, 'candidates, none proven');
(undef, $out) = run('explain', @plan, '--measured', '2.5 s');
like($out, qr/one figure proves none/, 'the text says so');
my $err;
for my $bad ('fast', '0 s', '-1 s', '5 parsecs', '') {
    ($status, $out, $err) = run('explain', @plan, '--measured', $bad);
    is($status, 2, "--measured '$bad': status 2");
    like($err, qr/measured/, '... and says what is wrong');
}

# ---- against a log ---------------------------------------------------------------------------
open my $log, '>', "$dir/train.log" or die;
print $log "using world size: 8, data-parallel size: 4, context-parallel size: 1, ",
    "tensor-model-parallel size: 2, pipeline-model-parallel size: 1\n",
    "------------------------ arguments ------------------------\n";
printf $log "  %s ............................... %s\n", @$_
    for ['global_batch_size', 32], ['micro_batch_size', 1], ['seq_length', 4096],
        ['tensor_model_parallel_size', 2], ['pipeline_model_parallel_size', 1], ['world_size', 8];
print $log " iteration $_/ 100 | consumed samples: ", 32 * $_,
    " | elapsed time per iteration (ms): 4000.0 | global batch size: 32 | lm loss: 1.0E+00 |\n"
    for 1 .. 20;
close $log;
($status, $out, $err) = run('explain', qw(--model llama3-8b --cluster dgx-h100 --log),
                            "$dir/train.log", '--json');
is($status, 0, 'explain --log') or diag($err);
my $logged = decode_json($out);
my $resolved = $logged->{prediction}{resolved_plan};
is_deeply([@$resolved{qw(gpus tp gbs seq)}], [8, 2, 32, 4096], 'the plan is that of the log');
is($logged->{measured}{measured_s}, 4, 'the step too');
($status, $out, $err) = run('explain', qw(--model llama3-8b --cluster dgx-h100 --tp 4 --log),
                            "$dir/train.log");
like($err, qr/--log says tp 2; 4 was given/, 'a contradiction is reported');

# ---- against a profile -----------------------------------------------------------------------
open my $profile, '>', "$dir/profile.json" or die;
print $profile encode_json([map { my $at = $_ * 1e6;
    ({ph => 'X', cat => 'user_annotation', name => "ProfilerStep#$_", ts => $at, dur => 1e6, pid => 1},
     {ph => 'X', cat => 'kernel', name => 'sm90_xmma_gemm', ts => $at, dur => 5e5, pid => 0,
      args => {device => 0, stream => 7}},
     {ph => 'X', cat => 'kernel', name => 'ncclDevKernel_AllGather', ts => $at + 4e5, dur => 4e5,
      pid => 0, args => {device => 0, stream => 9}}) } 1 .. 4]);
close $profile;
my $profiled = measured('--profile-trace', "$dir/profile.json");
is($profiled->{profile}{step_time_s}, 1, 'a step of the profile');
ok(abs($profiled->{profile}{exposed_communication_s} - 0.3) < 1e-9, 'its exposed communication');
my $explained = $profiled->{measured}{unexplained_pct};
$explained += $_->{explained_pct} for @{$profiled->{measured}{causes}};
ok(abs($explained - 100) < 1e-6, 'causes and the unexplained rest are all of the difference');
(undef, $out) = run('explain', @plan, '--profile-trace', "$dir/profile.json");
like($out, qr/gemm +[\d.]+ .?s +500\.00 ms/, 'measured beside predicted');
like($out, qr/% +unexplained/, 'the rest is stated');
for my $bad (['--log', "$dir/none"], ['--profile-trace', "$dir/train.log"],
             ['--measured', '1 s', '--log', "$dir/train.log"], ['--profile-steps', 2]) {
    ($status, $out, $err) = run('explain', @plan, @$bad);
    isnt($status, 0, "@$bad: refused");
    isnt($err, '', '... with a message');
}

# ---- no answer -------------------------------------------------------------------------------
($status, $out) = run('explain', @plan, '--tp', 3);
is($status, 3, 'an illegal plan: status 3');
like($out, qr/no feasible plan/, 'and why');
($status, $out, $err) = run('explain', @plan, '--max-events', 5, '--trace', "$dir/cut.json");
is($status, 1, 'a limit: status 1');
like($err, qr/limit of 5 events/, 'its message');
ok(-s "$dir/cut.json", 'and the partial trace');
done_testing();
