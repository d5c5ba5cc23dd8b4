#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Probabilities in sweep and whatif, evidence in predict, from outside.
use strict;
use warnings;
use JSON::PP;
use File::Temp qw(tempdir);
use List::Util qw(all);
use Test::More;

my $trainyard = ($ENV{B} // 'build') . '/trainyard';
my $inputs = '--model llama3-8b --cluster dgx-h100 --gbs 64 --seq 8192 -q';

sub json { return decode_json(scalar `$trainyard $_[0] --json`) }

# ---- sweep -----------------------------------------------------------------------------------
my @plans = @{json("sweep $inputs --gpus 16,32")->{plans}};
my %lists;
push @{$lists{$_->{plan}{gpus}}}, $_->{against_first} for @plans;
is(scalar keys %lists, 2, 'two lists');
for my $gpus (sort keys %lists) {
    my ($best, @others) = @{$lists{$gpus}};
    is($best->{ratio}, 1, "$gpus GPUs: the first against itself");
    is($best->{p_better}, 0.5, 'has an even chance');
    ok((all { $_->{ratio} >= 1 && $_->{p_better} <= 0.5 && $_->{p_better} > 0 } @others),
        'the others are behind');
    ok((all { $_->{interval_90}[0] < $_->{interval_80}[0] && $_->{interval_80}[0] < $_->{ratio} }
            @others), 'the wider interval is around the narrower');
}
# The chance of the second by the formula of docs/calibration.md, from the interval printed.
my $second = $lists{16}[1];
my $h80 = log($second->{interval_80}[1] / $second->{ratio});
my $h90 = log($second->{interval_90}[1] / $second->{ratio});
my $x = log($second->{ratio});
my $g = $x < $h80 ? log(5) * $x / $h80 : log(5) + log(2) * ($x - $h80) / ($h90 - $h80);
cmp_ok(abs($second->{p_better} - exp(-$g) / 2), '<', 1e-9, 'the formula gives the same chance');
my $text = `$trainyard sweep $inputs --gpus 16`;
like($text, qr/memory\s+P$/m, 'text: a column');
my $percent = sprintf '%.0f%%', 100 * $second->{p_better};
like($text, qr/GiB\s+\Q$percent\E$/m, 'text: the same chance');

# The best worst case: of every plan the upper end against the best of the others, by hand.
my $sweep = json("sweep $inputs --gpus 16");
my @ratio = map { $_->{against_first}{ratio} } @{$sweep->{plans}}; # times; the first is 1
my @worst = map { $ratio[$_] / ($_ == 0 ? $ratio[1] : 1) * exp $h90 } 0 .. $#ratio;
my ($choice) = sort { $worst[$a] <=> $worst[$b] || $a <=> $b } 0 .. $#worst;
is($sweep->{robust}{plan}, $choice, 'robust: the plan with the smallest upper end');
cmp_ok(abs($sweep->{robust}{interval_90}[1] - $worst[$choice]), '<', 1e-9, 'which is that of the formula');
my $behind = sprintf '%.1f %%', 100 * ($worst[$choice] - 1);
like($text, qr/best worst case: plan 1 of the list, in 90 % of runs at most \Q$behind\E behind plan 2$/m,
    'text: the same');

# ---- whatif ----------------------------------------------------------------------------------
my $whatif = json("whatif $inputs --gpus 16 --set cluster.gpu=h100-sxm,h200-sxm");
my ($same, $faster) = @{$whatif->{points}};
is($same->{p_faster}, 0.5, 'whatif: the base itself');
cmp_ok($faster->{p_faster}, '>', 0.5, 'more bandwidth is likely faster');
cmp_ok($faster->{time_ratio_80}[0], '<', $faster->{time_ratio_80}[1], 'with an interval');
is($whatif->{base}{p_faster}, undef, 'the base has no chance against itself');

# ---- database --------------------------------------------------------------------------------
# Every row of a sweep by the formula and the half widths of the profile stored with it; every point
# of a what-if as printed. Arguments: the file, the column compared with the best of its list, 1 or
# -1 where more or less of it is better. Prints rows, those that differ, those without a figure.
my $check = <<'PY';
import json, math, sqlite3, sys
db, column, sign = sqlite3.connect(sys.argv[1]), sys.argv[2], float(sys.argv[3])
profile = json.loads(db.execute("SELECT json FROM input WHERE kind = 'profile'").fetchone()[0])
h80, h90 = profile['interval']['dense_plans_80'], profile['interval']['dense_plans_90']
def p(x):
    a = abs(x)
    g = math.log(5) * a / h80 if a <= h80 else math.log(5) + math.log(2) * (a - h80) / (h90 - h80)
    return math.exp(-g) / 2 if x >= 0 else 1 - math.exp(-g) / 2
rows = db.execute('SELECT gpus, %s, p_faster, detailed FROM prediction WHERE feasible' % column).fetchall()
best = {}
for gpus, value, _, _ in rows:
    best[gpus] = max(best.get(gpus, -math.inf), sign * math.log(value))
off = sum(q is None or abs(p(best[gpus] - sign * math.log(value)) - q) > 1e-9 for gpus, value, q, _ in rows)
print(len(rows), off, sum(q is None for _, _, q, _ in rows))
PY
SKIP: {
    skip 'no python3 reads the file', 5 if system('python3 -c "import sqlite3" 2>/dev/null') != 0;
    my $folder = tempdir(CLEANUP => 1);
    open my $out, '>', "$folder/check.py" or die;
    print $out $check;
    close $out or die;
    my $narrow = "$inputs --gpus 8,16 --tp 1,2,4 --vpp 1";
    system("$trainyard sweep $narrow --db $folder/speed.db >/dev/null");
    my ($rows, $off) = split ' ', `python3 $folder/check.py $folder/speed.db tokens_per_s_per_gpu 1`;
    cmp_ok($rows, '>', 20, 'a sweep stores P of every plan');
    is($off, 0, 'against the best of its GPU count, by the formula');
    system("$trainyard sweep $narrow --set price.gpu_hour=2 --objective cost_per_token --db $folder/cost.db >/dev/null");
    ($rows, $off) = split ' ', `python3 $folder/check.py $folder/cost.db money_per_token -1`;
    ok($rows > 20 && $off == 0, 'in the objective of the search');
    my $points = json("whatif $inputs --gpus 16 --tp 2 --pp 1 --vpp 1 --db $folder/w.db --set 'cluster.network.nic=100..400 Gb/s'");
    my $stored = `python3 -c "import sqlite3; print(*[r[0] for r in sqlite3.connect('$folder/w.db').execute(
        'SELECT p_faster FROM prediction WHERE plan_id IS NOT NULL ORDER BY plan_id')])"`;
    is(scalar(my @stored = split ' ', $stored), 3, 'a what-if stores P of every point');
    ok((all { abs($stored[$_] - $points->{points}[$_]{p_faster}) < 1e-12 } 0 .. 2), 'as it prints it');
}

# ---- evidence --------------------------------------------------------------------------------
my $seen = json('predict --model llama3-8b --cluster dgx-h100 --gpus 64 --tp 4 --gbs 128 --seq 8192');
cmp_ok($seen->{evidence}{rows}, '>', 10, 'runs on 64 H100 inform the constants');
my $unseen = '--model deepseek-v3 --cluster mi300x-8x --gpus 8192 --tp 8 --pp 8 --ep 8 --gbs 8192 --seq 4096';
my $far = json("predict $unseen");
is($far->{evidence}{rows}, 0, 'none on 8192 MI300X');
like(`$trainyard predict $unseen`, qr/\Ano evidence: .*amd.*unseen: /, 'the first line says so');
unlike(`$trainyard predict $inputs --gpus 64`, qr/no evidence/, 'and is not there where runs are');
my $wide = log($far->{interval_80}[1] / $far->{step_time_s});
my $narrow = log($seen->{interval_80}[1] / $seen->{step_time_s});
cmp_ok($wide, '>=', $narrow, 'its interval is no narrower');
my $moe = json('predict --model deepseek-v2-lite --cluster dgx-h100 --gpus 8 --ep 8 --gbs 64 --seq 4096 --measured');
cmp_ok($wide, '>=', log($moe->{interval_80}[1] / $moe->{step_time_s}) - 1e-9, 'nor than that of experts');
done_testing();
