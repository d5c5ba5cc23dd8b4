#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# trainyard whatif: break-even by hand, kept plans read fast and slow, the database, refusals.
use strict;
use warnings;
no warnings 'qw'; # commas in the values of options
use lib 'tests';
use Command qw($folder run json);
use JSON::PP;
use Test::More;

sub near {
    my ($got, $want, $what) = @_;
    cmp_ok(abs($got - $want), '<=', 1e-9 * (1e-6 + abs $want), $what);
}

my @what = qw(whatif --model llama3-8b --cluster dgx-h100 --gpus 32 --gbs 64 --seq 4096
    --tp 1,2 --pp 1,2 --vpp 1 --quiet);
my @nic = ('--set', 'cluster.network.nic=100..400 Gb/s');

# ---- break-even ----
# At 2 an hour a token costs 2 / (3600 r): it costs the same at r_b / r_a of that.
my $rent = json(@what, @nic, qw(--set price.gpu_hour=2));
my ($slow, $base) = ($rent->{points}[0], $rent->{base});
my $ratio = $slow->{tokens_per_s_per_gpu} / $base->{tokens_per_s_per_gpu};
near($slow->{break_even_gpu_hour_pct}, 100 * ($ratio - 1), 'share of the rent');
near($slow->{break_even_gpu_hour}, 2 * ($ratio - 1), 'money per GPU-hour');
is($slow->{break_even_gpu}, undef, 'nothing was bought');
near($base->{money_per_mtoken}, 1e6 * 2 / 3600 / $base->{tokens_per_s_per_gpu}, 'money of a token');
# Bought over 4 years at 50 %: 17,532 hours.
my $own = json(@what, @nic, qw(--set price.capital.gpu=35064 --set price.capital.years=4
    --set price.capital.utilisation=0.5));
near($own->{points}[0]{break_even_gpu}, 35064 * ($ratio - 1), 'money per GPU bought');
near($own->{points}[0]{break_even_gpu_hour}, 2 * ($ratio - 1), 'which is 2 an hour');
is($rent->{points}[2]{p_faster}, 0.5, 'as it is: as likely faster as slower');
cmp_ok($slow->{p_faster}, '<', 0.5, 'a slower NIC is likely slower');
my $gpus = json(@what, '--set', 'cluster.gpu=a100-sxm-80gb,h200-sxm');
cmp_ok($gpus->{points}[0]{p_faster}, '<', 0.01, 'an A100 is slower');
cmp_ok($gpus->{points}[1]{break_even_gpu_hour_pct}, '>', 0, 'an H200 may cost more');

# ---- a kept plan ----
my @keep = (@what[0 .. $#what - 1], qw(--tp 2 --pp 2 --mbs 1 --recompute none --keep-plan --quiet));
my $fast = json(@keep, @nic, '--set', 'cluster.network.latency=5,20 us');
for my $point (@{ $fast->{points} }) {
    my @set = map { ('--set', "cluster.$_=$point->{settings}{$_}") } sort keys %{ $point->{settings} };
    my $one = json(qw(predict --model llama3-8b --cluster dgx-h100 --gpus 32 --gbs 64 --seq 4096
        --tp 2 --pp 2 --vpp 1 --mbs 1 --recompute none), @set);
    is($point->{step_time_s}, $one->{step_time_s}, "as predict says: @set[1, 3]");
}
is(scalar @{ $fast->{points} }, 6, 'six points');
my $mixed = json(@keep, '--set', 'cluster.gpu=h100-sxm,h200-sxm', @nic[0, 1]);
is($mixed->{points}[2]{step_time_s}, $fast->{base}{step_time_s},
    'a name among the settings: the files are read at each point');
my $bound = json(@keep, @nic, qw(--rung bound));
cmp_ok($bound->{points}[0]{step_time_s}, '<=', $fast->{base}{step_time_s} * 1.5, 'bounds');
is($bound->{points}[2]{change_pct}, 0, 'against the bound of the base');

# ---- database ----
my $db = "$folder/w.db";
my ($status) = run(@what, @nic, '--db', $db);
is($status, 0, 'one setting into a database');
my ($wide, $out) = run(@keep, '--set', 'cluster.network.nic=100..355+1 Gb/s', '--set',
    'cluster.network.latency=1..17+1 us', qw(--rung bound --db), $db);
is($wide, 0, '4,352 points');
like($out, qr/the best of 4352 points, of which 4352 are feasible/, 'are summed up');
($status) = run('report', '--db', $db, '--out', "$folder/report");
is($status, 0, 'report');
ok(-s "$folder/report/study1-knee.tsv", 'a knee of the first study');
ok(-s "$folder/report/study2-settings.tsv", 'what each setting does alone of the second');

# ---- refusals ----
my (undef, undef, $err) = run(@keep, '--set', 'cluster.network.nic=100..355+1 Gb/s', '--set',
    'cluster.network.latency=1..17+1 us');
like($err, qr/too many to print; give --db/, 'many points need a database');
(undef, undef, $err) = run(@what, @nic, qw(--rung bound));
like($err, qr/--rung bound.*needs --keep-plan/, 'bounds rank nothing');
done_testing();
