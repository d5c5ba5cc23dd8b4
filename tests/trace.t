#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# --trace: JSON, no two events of a track overlap, busy time per stream is that of the breakdown,
# every arrow has both ends on events; limits stop a simulation and leave what had run.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use List::Util qw(sum0 max);
use Test::More;

my $trainyard = ($ENV{B} // 'build') . '/trainyard';
my $dir = tempdir(CLEANUP => 1);
my @job = qw(--model llama3-8b --cluster dgx-h100 --seq 4096);

sub slurp {
    open my $file, '<', $_[0] or return '';
    local $/;
    return scalar <$file>;
}

# returns (exit status, output, standard error)
sub run {
    my $args = join ' ', map { "'$_'" } @_;
    my $out = `$trainyard $args 2>$dir/stderr`;
    return ($? >> 8, $out, slurp("$dir/stderr"));
}

# Events by track, arrows by id; checks what holds for every trace.
sub trace {
    my ($what, $name) = @_;
    my $trace = eval { decode_json(slurp($name)) };
    ok($trace, "$what: JSON") or return;
    my (%track, %arrow, %named);
    for my $event (@{$trace->{traceEvents}}) {
        my $place = "$event->{pid}/" . ($event->{tid} // '');
        push @{$track{$place}}, $event if $event->{ph} eq 'X';
        $arrow{$event->{id}}{$event->{ph}} = $event if $event->{ph} =~ /^[sf]$/;
        $named{$place} = $event->{args}{name} if $event->{name} eq 'thread_name';
    }
    my ($overlaps, $loose, $backward) = (0, 0, 0);
    for my $events (values %track) {
        my @sorted = sort { $a->{ts} <=> $b->{ts} || $a->{dur} <=> $b->{dur} } @$events;
        # 1e-6 us is the last digit; sums of doubles lose some of it
        $overlaps += $sorted[$_ - 1]{ts} + $sorted[$_ - 1]{dur} > $sorted[$_]{ts} + 2e-6
            for 1 .. $#sorted;
    }
    for my $ends (values %arrow) {
        my ($from, $to) = @$ends{qw(s f)};
        if (!$from || !$to) { $loose++; next }
        $backward += $from->{ts} > $to->{ts} + 2e-6;
        for my $end ($from, $to) {
            $loose++ unless grep { $_->{ts} <= $end->{ts} + 2e-6 &&
                                   $end->{ts} <= $_->{ts} + $_->{dur} + 2e-6 }
                @{$track{"$end->{pid}/$end->{tid}"}};
        }
    }
    is($overlaps, 0, "$what: no two events of a track overlap");
    is($loose, 0, "$what: every arrow starts and ends on an event");
    is($backward, 0, "$what: no arrow goes back in time");
    is_deeply([sort keys %named], [sort keys %track], "$what: every track has a name");
    return (\%track, \%named, scalar keys %arrow);
}

sub busy { return 1e-6 * sum0 map { $_->{dur} } @_ }

sub near {
    my ($got, $want, $what) = @_;
    ok(abs($got - $want) <= 1e-9 * abs $want, $what) or diag("got $got, want $want");
}

# ---- one GPU: the compute stream is the step -------------------------------------------------
my ($status, $out) = run('predict', @job, qw(--gpus 1 --gbs 4 --measured --json --trace),
                         "$dir/one.json");
is($status, 0, 'one GPU');
my ($track) = trace('one GPU', "$dir/one.json");
near(busy(@{$track->{'0/0'}}), decode_json($out)->{step_time_s}, 'its compute stream is always busy');

# ---- a pipeline: busy and waiting ------------------------------------------------------------
for my $plan ([qw(--pp 4)], [qw(--pp 2 --tp 2 --vpp 2)],
              [qw(--pp 4 --tp 2 --sharding zero1)]) {
    my @plan = @$plan;
    my $what = "@plan";
    ($status, $out) = run('predict', @job, qw(--gpus 32 --gbs 64), @plan, '--json', '--trace',
                          "$dir/p.json");
    is($status, 0, $what);
    my $p = decode_json($out);
    my ($track, $named, $n_arrows) = trace($what, "$dir/p.json");
    my $parts = sum0 map { $p->{breakdown_s}{$_} // 0 }
        qw(gemm attention memory_bound launch tp cp ep);
    my ($nearest) = sort { $a <=> $b } map {
        abs(busy(grep { $_->{name} =~ /^(step fixed|forward|backward)/ } @{$track->{$_}}) - $parts)
    } grep { $named->{$_} eq 'compute' } keys %$track;
    ok($nearest <= 1e-9 * $parts,
       "$what: passes of the busiest stage take what the breakdown says") or diag("off by $nearest s");
    my $last = max map { $_->{ts} + $_->{dur} } map { @$_ } values %$track;
    near(1e-6 * $last, $p->{step_time_s}, "$what: the last event ends with the step");
    cmp_ok($n_arrows, '>', 0, "$what: has arrows");
}

# ---- every rank: a slow one among 16 ---------------------------------------------------------
open my $scenario, '>', "$dir/s.json" or die;
print $scenario '{"speeds": [{"rank": 5, "ratio": 0.8}]}';
close $scenario;
my @full = (@job, qw(--gpus 16 --pp 2 --tp 2 --gbs 16 --rung full --scenario), "$dir/s.json");
($status, $out) = run('predict', @full, '--json', '--trace', "$dir/full.json");
is($status, 0, 'every rank');
my ($every) = trace('every rank', "$dir/full.json");
my %ranks = map { (split m{/})[0] => 1 } keys %$every;
is_deeply([sort { $a <=> $b } keys %ranks], [0 .. 15], 'a process for each rank');
near(1e-6 * (max map { $_->{ts} + $_->{dur} } map { @$_ } values %$every),
     decode_json($out)->{step_time_s}, 'the last event ends with the step');
($status) = run('predict', @full, '--max-time', '20 ms', '--trace', "$dir/cut.json");
is($status, 1, 'a limit stops every rank');

# ---- limits ----------------------------------------------------------------------------------
my @large = (@job, qw(--gpus 32 --pp 4 --gbs 64));
my $err;
($status, $out, $err) = run('predict', @large, '--max-events', 200, '--trace', "$dir/cut.json");
is($status, 1, 'a limit on events: status 1');
like($err, qr/limit of 200 events was reached; stopped at .* of \d+ tasks/, 'its message');
is($out, '', 'no answer');
($track) = trace('cut', "$dir/cut.json");
ok((grep { $_->{name} =~ /not finished/ } map { @$_ } values %$track) > 0,
   'what was running is marked');
($status, $out, $err) = run('predict', @large, '--max-time', '500 ms', '--trace', "$dir/cut.json");
like($err, qr/limit of 0\.5 s of simulated time was reached/, 'a limit on simulated time');
($track) = trace('cut by time', "$dir/cut.json");
cmp_ok((max map { $_->{ts} + $_->{dur} } map { @$_ } values %$track), '<=', 5e5,
       'nothing after the limit');
($status, $out, $err) = run('predict', @large, '--max-memory', '300 KiB');
is($status, 1, 'a limit on memory: status 1');
like($err, qr/limit of 0\.293 MiB of memory was reached/, 'its message');
($status) = run('predict', @large, '--max-memory', '1 GiB', '--max-time', '3600 s', '--max-events',
                1000000);
is($status, 0, 'limits that are not reached change nothing');
for my $bad (['--max-time', '-1 s'], ['--max-time', '3'], ['--max-memory', '0 GiB'],
             ['--max-events', 'x']) {
    ($status, $out, $err) = run('predict', @large, @$bad);
    is($status, 2, "@$bad: status 2");
    like($err, qr/max-/, "@$bad: message");
}

# ---- trace without a simulation --------------------------------------------------------------
($status, $out, $err) = run('predict', @large, qw(--rung bound --trace), "$dir/none.json");
like($err, qr/unused: --trace/, 'nothing was simulated: reported');
($status, $out, $err) = run('predict', @large, '--trace', "$dir/no/such/folder.json");
is($status, 1, 'a trace that cannot be written');
done_testing();
