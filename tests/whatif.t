#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# trainyard whatif: break-even by hand, kept plans read fast and slow, the database, refusals.
use strict;
use warnings;
no warnings 'qw'; # commas in the values of options
use lib 'tests';
use Command qw($folder run json spit);
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

# What predict says of the same plan and settings, by the kind each path is of.
sub as_predict {
    my ($points, $what, @with) = @_;
    my $n_same = 0;
    for my $point (@$points) {
        my @set = map { ('--set', (/^input|^seq/ ? '' : 'cluster.') . "$_=$point->{settings}{$_}") }
            sort keys %{ $point->{settings} };
        s/^seq/plan.seq/ for @set;
        my $one = json(qw(predict --model llama3-8b --cluster dgx-h100 --gpus 32 --gbs 64 --seq 4096
            --tp 2 --pp 2 --vpp 1 --mbs 1 --recompute none --quiet), @with, @set);
        $n_same += $point->{step_time_s} == $one->{step_time_s};
    }
    is($n_same, scalar @$points, "as predict says: $what");
}
my $device = json(@keep, qw(--set cluster.network.fabric=infiniband,roce --set), 'cluster.gpu.peak.bf16=500,989 Tflop/s',
    qw(--set plan.seq=2048,4096 --set), 'cluster.gpu.memory.bandwidth=1,3 TB/s');
is(scalar @{ $device->{points} }, 16, 'two fabrics by two peaks by two lengths by two bandwidths');
as_predict($device->{points}, 'constants of the device inside inputs that are loaded');
my $feed = json(@keep, qw(--input text --set), 'input.decode=1 ms,20 s', qw(--set input.workers=1,4));
as_predict($feed->{points}, 'the input pipeline', qw(--input text));
cmp_ok($feed->{points}[2]{step_time_s}, '>', 2 * $feed->{points}[3]{step_time_s},
    '20 s of work for a sample: four workers are faster than one');

# Tables measured with NICs of 400 Gb/s say nothing of others.
my @table = map { { op => $_, ranks => 8, ranks_per_domain => 4, source => 'made up', size_bytes => [1e6, 1e10],
    time_us => [1e6, 1e7] } } qw(all_gather reduce_scatter);
my $profile = spit('p.json', encode_json({ stack => 'megatron-core', measured => { tables => \@table,
    machine => { gpu => 'h100-sxm', nic_bytes_per_s => 50e9, nics_per_node => 8 } } }));
my $tables = json(@keep, '--profile', $profile, '--set', 'cluster.network.nic=100,400 Gb/s');
as_predict($tables->{points}, 'measured tables', '--profile', $profile);
cmp_ok($tables->{points}[0]{step_time_s}, '<', 0.1 * $tables->{points}[1]{step_time_s},
    'tables of slow collectives hold for the NICs they were measured with alone');

# The tornado: each setting alone, the rest of the plan as the base has it.
my @open = (@what[0 .. $#what - 1], qw(--tp 2 --pp 2 --recompute none --keep-plan --quiet));
my (undef, $tornado) = run(@open, qw(--set plan.vpp=1,2 --set plan.mbs=1,2 --set), 'cluster.network.nic=400,400 Gb/s');
like($tornado, qr/network\.nic +\+0\.0 \.\. \+0\.0 %/, 'the NIC as it is changes nothing beside settings of the plan');

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

# ---- long axes ----
my $long = json(@keep, '--set', 'cluster.gpu.memory.bandwidth=1010..4000+10 GB/s', qw(--rung bound));
is(scalar @{ $long->{points} }, 300, 'an axis of 300 values');
is($long->{points}[299]{settings}{'gpu.memory.bandwidth'}, '4000 GB/s', 'its last');
cmp_ok($long->{points}[299]{step_time_s}, '<', $long->{points}[0]{step_time_s}, 'is the fastest');

# ---- refusals ----
(undef, undef, my $many) = run(@keep, '--set', 'cluster.network.latency=1..70000+1 us', '--db', "$folder/no.db");
like($many, qr/latency.*has more than 65536 values/, 'too many values');
(undef, undef, $many) = run(@keep, (map { ('--set', "cluster.$_=1..1001+1") } qw(network.latency
    network.nic network.oversubscription)), '--db', "$folder/no.db");
like($many, qr/crosses 1\.003e\+09 points, at most 1000000000/, 'too many points');
ok(!-e "$folder/no.db", 'and no file is begun');
(undef, undef, my $twice) = run(@keep, qw(--set cluster.gpu.sms=100,132 --set cluster.gpu=h200-sxm));
like($twice, qr/gpu\.sms=100,132: has no effect: cluster\.gpu=h200-sxm comes after it/, 'a setting that is overwritten');
# ---- gpu.FIELD is cluster.gpu.FIELD ----
my @rate = map { json(@keep, '--set', "${_}memory.bandwidth=1,3 TB/s", qw(--rung bound)) } qw(gpu. cluster.gpu.);
is($rate[0]{points}[$_]{step_time_s}, $rate[1]{points}[$_]{step_time_s}, "the same GPU, point $_") for 0, 1;
isnt($rate[0]{points}[0]{step_time_s}, $rate[0]{points}[1]{step_time_s}, 'its memory tells');
(undef, undef, my $none) = run(@keep, qw(--set gpu.memory=1,3));
like($none, qr/gpu\.memory=1,3: is no field/, 'a GPU without such a field');
(undef, undef, my $beside) = run(qw(show gpu h100-sxm --set cluster.network.nic=1));
like($beside, qr/unused: cluster\.network\.nic=1/, 'show gpu: the rest of a cluster is unused');
my (undef, undef, $err) = run(@keep, '--set', 'cluster.network.nic=100..355+1 Gb/s', '--set',
    'cluster.network.latency=1..17+1 us');
like($err, qr/too many to print; give --db/, 'many points need a database');
(undef, undef, $err) = run(@what, @nic, qw(--rung bound));
like($err, qr/--rung bound.*needs --keep-plan/, 'bounds rank nothing');
done_testing();
