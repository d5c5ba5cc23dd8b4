#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# The closed loop: measure this machine's processor, fit, predict the step time of small GPTs that were
# never measured, and only then train them for real, data-parallel over two processes
# (tests/closed_loop/gpt.c). Bar: within 15 % for 8 of 10.
#
# A machine that others use has no step time to predict. What the ranks saw of others is measured too,
# and where it is too much the bar is skipped with the figure; everything else is tested all the same.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{B} // 'build';
my $folder = tempdir(CLEANUP => 1);
my $budget = $ENV{TRAINYARD_MEASURE_S} // ($ENV{TRAINYARD_LONG} ? 30 : $ENV{SANITIZE} ? 1 : 6); # s of measuring
my $steps = 6;
# CLEAN: share of a step that a rank may be off its core; BUSY: percent of the measurement that others had.
use constant { CLEAN => 0.02, FEWEST => 3, BAR => 0.15, BUSY => 10 };

# layers hidden heads seq mbs vocab: none is on the grid of calibrate measure.
my @shapes = (
    [2, 192, 3, 96, 4, 1000], [2, 320, 5, 128, 2, 1200], [2, 256, 4, 192, 2, 1500], [1, 448, 7, 112, 4, 900],
    [3, 192, 3, 128, 4, 1600], [1, 384, 6, 224, 2, 2000], [2, 320, 5, 96, 4, 800], [1, 512, 8, 144, 2, 1600],
    [2, 384, 6, 160, 2, 1400], [1, 448, 7, 256, 1, 1800]);

sub lines { my ($command) = @_; my @lines = `$command`; return $? == 0 ? @lines : () }
sub median { my @s = sort { $a <=> $b } @_; return @s ? $s[@s / 2] : undef }
sub write_json { my ($name, $value) = @_; open my $f, '>', "$folder/$name" or die; print $f encode_json($value); close $f }
sub read_json { my ($name) = @_; open my $f, '<', "$folder/$name" or die; local $/; return decode_json(scalar <$f>) }

sub model_of {
    my ($layers, $hidden, $heads, $seq, $mbs, $vocab) = @_;
    return { model_type => 'gpt2', n_layer => $layers, n_embd => $hidden, n_head => $heads,
        vocab_size => $vocab, n_positions => $seq };
}

# What the trainer is, counted in its source: passes over an activation [T,h] that its element-wise kernels
# make, over those the simulator has for them (forward 2 norms of 2, residuals 4 + 3, GELU 2 x 4; backward
# 1.7 times that). Forward: norms 4, residuals 6, GELU 8. Backward: norms 2 x 4, GELU 12.
use constant ELEMENTWISE => (18 + 20) / (2.7 * 19);

# Adam moves its bytes faster than a copy does (it writes where it has just read): by its own record, over
# the 34 bytes a parameter that the simulator counts besides the norm.
sub optimizer_ratio {
    my ($fit, @records) = @_;
    my ($ratio) = map { $_->{value} } grep { $_->{name} eq 'device.mem_ratio' } @{ $fit->{_fit}{constants} };
    my ($peak) = $fit->{_fit}{machine}{gpu}{memory}{bandwidth} =~ /^([\d.e+]+) B\/s$/;
    my ($adam) = grep { $_->{parameters}{function} eq 'adam' && $_->{parameters}{elements} == 1048576 }
        grep { $_->{kind} eq 'memory' } @records;
    return $adam && $peak ? $adam->{values}{time_s} / 1048576 * $ratio * $peak / 34 : 1;
}

sub predict {
    my ($index, $optimizer) = @_;
    my ($layers, $hidden, $heads, $seq, $mbs, $vocab) = @{ $shapes[$index] };
    write_json("m$index.json", model_of(@{ $shapes[$index] }));
    my $command = "$build/trainyard predict --model $folder/m$index.json --cluster $folder/machine.json"
        . " --profile $folder/p.json --gpus 2 --tp 1 --pp 1 --mbs $mbs --gbs " . 2 * $mbs . " --seq $seq"
        . ' --precision fp32 --sharding none --overlap none --recompute none --measured --json'
        . " --set profile.software.step_fixed='0 s' --set profile.software.micro_fixed='0 s'"
        . " --set profile.software.host_layer='0 s' --set profile.software.elementwise_ratio=" . ELEMENTWISE
        . " --set profile.software.optimizer_ratio=$optimizer";
    my $text = join '', lines("$command 2>$folder/err");
    return $text ? decode_json($text) : undef;
}

# ---- measure, fit, predict ---------------------------------------------------------------------
my ($report) = grep { /points measured/ }
    lines("$build/trainyard calibrate measure --ranks 2 --budget ${budget}s --out $folder/r.jsonl 2>$folder/err");
ok($report, 'measured') or BAIL_OUT('no measurement');
open my $f, '<', "$folder/r.jsonl" or die;
my @records = map { decode_json($_) } <$f>;
my $warned = do { open my $e, '<', "$folder/err" or die; join '', <$e> };
my ($busy) = $warned =~ /had the cores for (\d+) %/;
ok(lines("$build/trainyard calibrate fit --records $folder/r.jsonl --out $folder/p.json 2>/dev/null"), 'fitted');
my $fit = read_json('p.json');
write_json('machine.json', $fit->{_fit}{machine});
my $optimizer = optimizer_ratio($fit, @records);
my @predicted = map { predict($_, $optimizer) } 0 .. $#shapes;
is(scalar(grep { $_ && $_->{step_time_s} > 0 } @predicted), scalar @shapes, 'predicted, before any was trained');
is(scalar(grep { $_->{memory}{fits} } @predicted), scalar @shapes, 'all fit') if exists $predicted[0]{memory}{fits};

# ---- train -------------------------------------------------------------------------------------
# Wall time of steps in which neither rank lost its core for over 2 %, the first two left out.
sub train {
    my ($index, $tries) = @_;
    my ($layers, $hidden, $heads, $seq, $mbs, $vocab) = @{ $shapes[$index] };
    my (@clean, @loss, $off);
    for my $try (1 .. $tries) {
        my @run = map { [split] } lines("$build/closed_loop/gpt $layers $hidden $heads $seq $mbs $vocab 2 $steps");
        return unless @run == $steps;
        @loss = map { $_->[2] } @run;
        push @clean, map { $_->[0] } grep { $_->[1] < CLEAN } @run[2 .. $#run];
        $off = median(map { $_->[1] } @run);
        last if @clean >= FEWEST || $off > 0.3; # far from quiet: trying again is no use
    }
    return { n => scalar @clean, time_s => median(@clean), off => $off, learns => $loss[-1] < $loss[0] };
}
my $why;
$why = 'sanitizers slow the kernels down' if $ENV{SANITIZE};
$why = "no quiet machine: other programs had the cores for $busy % of the measurement" if !$why && ($busy // 0) > BUSY;
my $last = $why ? 1 : $#shapes; # two of them show that it trains
my @trained = map { train($_, $why ? 1 : 4) } 0 .. $last;
is(scalar(grep { $_ && $_->{learns} } @trained), $last + 1, 'trained, and the loss falls');
if ($why) {
    SKIP: { skip $why, 1 }
    done_testing();
    exit;
}

# ---- compare -----------------------------------------------------------------------------------
my ($n_clean, $n_good, $most_off) = (0, 0, 0);
my $table = sprintf "%-34s %10s %10s %9s %6s\n", 'layers hidden heads seq mbs vocab', 'predicted', 'measured', 'error',
    'steps';
for my $i (0 .. $#shapes) {
    my ($want, $got) = ($predicted[$i]{step_time_s}, $trained[$i]);
    my $counts = $got->{n} >= FEWEST;
    my $error = $counts ? $want / $got->{time_s} - 1 : undef;
    $table .= sprintf "%-34s %7.1f ms %10s %9s %6d\n", join(' ', map { sprintf '%4d', $_ } @{ $shapes[$i] }), 1e3 * $want,
        $counts ? sprintf('%.1f ms', 1e3 * $got->{time_s}) : '-', $counts ? sprintf('%+.1f %%', 100 * $error) : '-',
        $got->{n};
    $n_clean += $counts;
    $n_good++ if $counts && abs($error) <= BAR;
    $most_off = $got->{off} if $got->{off} > $most_off;
}
diag("$table$n_good of $n_clean within 15 %");
my $again = train(0, 4);
my $moved = $again->{n} >= FEWEST && $trained[0]{n} >= FEWEST ? abs($again->{time_s} / $trained[0]{time_s} - 1) : 1;
$why = sprintf 'no quiet machine: %d of 10 shapes had three undisturbed steps, ranks were off their cores for up to '
    . '%.0f %%', $n_clean, 100 * $most_off if $n_clean < @shapes;
$why = sprintf 'the speed of this machine changes: the first shape, trained again, took %.0f %% more or less', 100 * $moved
    if !$why && $moved > 0.1;
SKIP: {
    skip $why, 1 if $why;
    cmp_ok($n_good, '>=', 8, 'within 15 % for 8 of 10 shapes that were never measured');
}
done_testing();
