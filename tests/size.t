#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# trainyard size, prices and goals on the command line: keys of the answer, hand-checked sums,
# refusals.
use strict;
use warnings;
no warnings 'qw'; # commas in the values of options
use lib 'tests';
use Command;
use JSON::PP;
use Test::More;

sub refused {
    my ($what, $pattern, @command) = @_;
    my ($status, undef, $err) = run(@command);
    is($status, 2, "$what: status 2");
    like($err, $pattern, "$what: says why");
}

my @model = qw(--model llama3-8b --gbs 256 --seq 4096 --tp 1..8*2 --pp 1,2 --vpp 1);
my @rent = qw(--price examples/price-rent.json --set price.pue=1 --set price.power.node=0W);
my @size = ('size', @model, qw(--cluster dgx-h100));

# ---- size ----
my $answer = json(@size, @rent, qw(--tokens 1T --deadline 60d --mtbf 6000h));
for my $key (qw(gpus spares days cost p_meet_deadline plan assumptions)) {
    ok(exists $answer->{$key}, "size: $key");
}
is($answer->{gpus}, $answer->{plan}{gpus}, 'the plan is for these GPUs');
ok($answer->{days}{p10} < $answer->{days}{p50} && $answer->{days}{p50} < $answer->{days}{p90},
    'days in order');
cmp_ok($answer->{days}{p50}, '<=', 60, 'in time');
# examples/price-rent.json: 2 USD a GPU-hour; spare nodes have 8 GPUs
near($answer->{cost}{p50},
    2 * 24 * ($answer->{gpus} + 8 * $answer->{spares}) * $answer->{days}{p50},
    'cost: 2 USD x GPU-hours, spares included');
is($answer->{currency}, 'USD', 'in USD');
is($answer->{price_date}, '2026-01-31', 'of a day');
ok((grep { $_->{field} eq 'restart' } @{ $answer->{assumptions} }), 'the restart time is assumed');

my $two = json('size', @model, '--gpu', 'h100-sxm,a100-sxm-80gb', @rent,
    qw(--tokens 1T --deadline 60d));
is(scalar @{ $two->{machines} }, 2, 'two GPU types');
my ($cheap) = sort { $a->{cost}{p50} <=> $b->{cost}{p50} } @{ $two->{machines} };
is($two->{gpu}, $cheap->{gpu}, 'the cheaper one is taken');
my $own = json('size', @model, qw(--gpu h100-sxm,a100-sxm-80gb --tokens 1T --deadline 60d),
    '--price', 'examples/price-rent.json,examples/price-own.json');
is(scalar @{ $own->{machines} // [] }, 2, 'a price list for each');

my $job = spit('job.json', '{"phases": [{"tokens": "500Gtok"}, {"tokens": 5e11, "seq": 8192,
    "gbs": 128}], "downtime_days": 2}');
my $phased = json(@size, '--phases', $job, qw(--deadline 60d));
near($phased->{days}{p50}, 2 + $phased->{phases}[0]{days} + $phased->{phases}[1]{days},
    'two phases and two days of downtime');
is($phased->{phases}[1]{plan}{seq}, 8192, 'each phase with its sequences');

# ---- database ----
# Each count as size says of it alone; the answer is the smallest in time.
my $db = "$folder/size.db";
my $stored = json(@size, @rent, qw(--tokens 1T --deadline 60d --gpus 8,32,128 --db), $db);
run('report', '--db', $db, '--out', "$folder/report");
ok(-s "$folder/report/size.gp", 'report draws speed and cost');
open my $points, '<', "$folder/report/size.tsv" or die;
my %point = map { my @row = split; $row[0] => \@row } grep { !/^#/ } <$points>;
is(join(' ', sort { $a <=> $b } keys %point), '8 32 128', 'a point for each count');
for my $gpus (sort { $a <=> $b } keys %point) {
    my $alone = json(@size, @rent, qw(--tokens 1T --gpus), $gpus);
    near($point{$gpus}[1] * $alone->{days}{p50} * 86400, 1e12, "$gpus GPUs: tokens/s");
    near($point{$gpus}[$_->[0]], $alone->{cost}{$_->[1]}, "$gpus GPUs: money, $_->[1]")
        for [2, 'p50'], [3, 'p10'], [4, 'p90'];
    is($point{$gpus}[5], $alone->{days}{p50} <= 60 ? 1 : 0, "$gpus GPUs: in time or not");
}
is($stored->{gpus}, 32, 'the answer is the smallest in time');
my (undef, $launch) = run('export', 'launch', '--framework', 'megatron', '--from', "$db#1");
like($launch, qr/--tensor-model-parallel-size/, 'its plans can be launched');
run(@size, qw(--tokens 1T --deadline 60d --cluster dgx-h100,dgx-a100 --db), "$folder/two.db");
run('report', '--db', "$folder/two.db", '--out', "$folder/two");
ok(-s "$folder/two/study1-size.tsv" && -s "$folder/two/study2-size.tsv", 'a study for each machine');

my ($status, $out) = run(@size, qw(--tokens 1T --deadline 1s --gpus 8,16));
is($status, 3, 'no machine in time: status 3');
like($out, qr/no count of GPUs does/, 'and said');
refused('no tokens', qr/--tokens/, @size);
refused('tokens twice', qr/--phases/, @size, '--phases', $job, qw(--tokens 1T));
refused('odd tokens', qr/15X/, @size, qw(--tokens 15X));
refused('odd time', qr/60 moons/, @size, qw(--tokens 1T --deadline), '60 moons');
refused('budget without prices', qr/--budget: needs prices: give --price FILE or --set price/, @size,
    qw(--tokens 1T --budget 100));
refused('cheapest without prices', qr/--objective cost_per_token: needs prices/, 'sweep', @size[1 .. $#size],
    qw(--objective cost_per_token));
refused('restart without failures', qr/no effect/, @size, qw(--tokens 1T --restart 60s));
refused('confidence of nothing', qr/no effect/, @size, qw(--tokens 1T --confidence 90%));
refused('unknown GPU', qr/h1000/, 'size', @model, qw(--gpu h1000 --tokens 1T));
refused('phase without tokens', qr/tokens/, @size, '--phases', spit('a.json', '{"phases": [{}]}'));
refused('unknown key of a job', qr/phase:/,
    @size, '--phases', spit('b.json', '{"phase": [{"tokens": 1}]}'));

# ---- prices ----
my @plan = qw(predict --model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096);
my $cost = json(@plan, @rent)->{cost};
is($cost->{gpus_paid}, 16, 'predict: all GPUs are paid for');
my $step_s = json(@plan)->{step_time_s};
near($cost->{money_per_step}, 16 * 2 / 3600 * $step_s, 'rent of a step');
near($cost->{money_per_mtoken}, $cost->{money_per_step} / (64 * 4096) * 1e6, 'of a million tokens');
is(json(@plan)->{cost}{money_per_step}, undef, 'no prices, no money');
near(json(@plan)->{cost}{energy_j_per_step}, $cost->{energy_j_per_step}, 'but energy');
refused('prices without a day', qr/date/, @plan, '--price', spit('c.json', '{"gpu_hour": 1}'));
refused('prices without a currency', qr/currency/, @plan, '--price',
    spit('d.json', '{"gpu_hour": 1, "date": "2026-01-01"}'));
like((run(qw(show price examples/price-own.json)))[1], qr/capital\.gpu +25000/, 'show price');

# ---- goals of a sweep ----
my @sweep = ('sweep', @model, qw(--cluster dgx-h100 --gpus 16,32,64 --quiet));
my $by_cost = json(@sweep, @rent, qw(--objective cost_per_token --overall));
my @money = map { $_->{objectives}{cost_per_token} } @{ $by_cost->{plans} };
is_deeply(\@money, [sort { $a <=> $b } @money], 'by cost: cheapest first');
is($by_cost->{plans}[0]{against_first}{p_better}, 0.5, 'the first against itself');
cmp_ok($by_cost->{plans}[-1]{against_first}{p_better}, '<', 0.5, 'and the last against it');
my $set = json(@sweep, @rent, qw(--pareto cost_per_token,time_to_tokens --tokens 1T));
my @days = map { $_->{objectives}{time_to_tokens} } @{ $set->{plans} };
is_deeply(\@days, [sort { $b <=> $a } @days], 'a set: what costs more is faster');
refused('one objective for a set', qr/two or three/, @sweep, qw(--pareto tokens_per_s));
refused('a ratio as a percentage', qr/--min-mfu.*0 to 1/, @sweep, qw(--min-mfu 40));
refused('unknown objective', qr/energy_per_token/, @sweep, qw(--objective speed));
refused('cost without prices', qr/price/, @sweep, qw(--objective cost_per_token));
($status, $out) = run(@sweep, qw(--tokens 1T --deadline 1s));
is($status, 3, 'a limit that none keeps: status 3');
like($out, qr/beyond the limits.*deadline/s, 'and which');
done_testing();
