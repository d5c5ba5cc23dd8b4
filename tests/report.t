#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Sweep, database and report from outside: the three tell the same story, a name in a user's file
# stays a name, and refusals have their exit codes.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use JSON::PP;
use List::Util qw(sum);
use Test::More;

my $trainyard = abs_path(($ENV{B} // 'build') . '/trainyard');
my $plot = abs_path('tools/plot_bench.sh');
my $dir = tempdir(CLEANUP => 1);
chdir $dir or die;

sub run {
    my @args = map { my $arg = $_; $arg =~ s/'/'\\''/g; "'$arg'" } @_;
    my $out = `$trainyard @args 2>stderr`;
    return ($? & 127 ? "signal $?" : $? >> 8, $out);
}

sub contents {
    my ($name) = @_;
    open my $file, '<', $name or return "(no $name)";
    local $/;
    return scalar <$file>;
}

sub installed { return system("$_[0] --version >/dev/null 2>&1") == 0 }

# A model whose name tries to be code everywhere it is shown.
my $name = q(<script>x</script>'"; system('touch owned'); `touch owned`);
my ($status, $out) = run(qw(show model llama3-8b --json));
my $model = decode_json($out)->{model};
$model->{name} = $name;
open my $file, '>', 'model.json' or die;
print $file encode_json($model);
close $file;

my @sweep = (qw(sweep --model model.json --cluster dgx-h100 --seq 4096 --gbs 64),
    qw(--db study.db --quiet), "--gpus=8,16", "--tp=1,2,4,8", "--pp=1,2");
($status, $out) = run(@sweep, '--json');
is($status, 0, 'a sweep into a database');
my $answer = decode_json($out);
cmp_ok($answer->{evaluated}, '>', 0, 'plans are evaluated');
cmp_ok(scalar @{$answer->{plans}}, '>', 1, 'and the best are listed');

SKIP: {
    skip 'sqlite3 is not installed', 5 unless installed('sqlite3');
    my $ask = sub { my $got = `sqlite3 study.db "$_[0]"`; chomp $got; return $got };
    is($ask->('SELECT count(*) FROM prediction WHERE NOT detailed'), $answer->{evaluated},
        'every evaluated plan is a row');
    is($ask->('SELECT sum(count) FROM rejection'), sum(values %{$answer->{rejected}}),
        'every rejection is counted');
    is($ask->("SELECT name FROM input WHERE kind = 'model'"), $name, 'the name is only a name');
    my $best = $answer->{plans}[0];
    is($ask->('SELECT tp || pp || mbs FROM best WHERE rank = 1 ORDER BY gpus LIMIT 1'),
        join('', @{$best->{plan}}{qw(tp pp mbs)}), 'the view finds the same best plan');
    is($ask->('SELECT count(*) FROM prediction WHERE abs((SELECT sum(time_s) FROM breakdown'
            . ' WHERE prediction_id = id) / step_time_s - 1) > 1e-12'),
        0, 'every breakdown adds up to its step time');
}

($status, $out) = run(qw(report --db study.db --out report));
is($status, 0, 'a report');
my $page = contents('report/index.html');
unlike($page, qr/<script/, 'no script in the page');
like($page, qr/&#60;script&#62;x&#60;\/script&#62;/, 'the name is shown');
ok(!-e 'owned' && !-e 'report/owned', 'nothing in the name is run');
my ($row) = contents('report/scaling.tsv') =~ /^8\t([^\t]+)/m;
my ($best) = sort { $b <=> $a } map { $_->{tokens_per_s} }
    grep { $_->{plan}{gpus} == 8 } @{$answer->{plans}};
cmp_ok($row, '==', $best, 'the scaling curve starts at the best plan of 8 GPUs');
SKIP: {
    skip 'gnuplot is not installed', 2 unless installed('gnuplot');
    like($out, qr/5 plots/, 'five plots');
    is(scalar(grep { -s } map { ("report/$_.svg", "report/$_.png") }
            qw(scaling breakdown memory grid pareto)), 10, 'each as SVG and PNG');
}

is((run(qw(report --db study.db)))[0], 2, 'a report needs a folder');
isnt((run(qw(report --db missing.db --out r)))[0], 0, 'a missing database fails');
is((run(qw(report --db model.json --out r)))[0], 2, 'a file that is no database is bad input');
is((run(@sweep[0 .. 4], qw(--gpus 8 --db model.json --quiet)))[0], 2,
    'a sweep does not write into a file of something else');

# The plot of benchmarks, from lines of them.
open my $bench, '>', 'bench.tsv' or die;
print $bench "bound.405B\t9\tus\nstep.m16\t1.5\tms\nstep.m16.events\t7\t1/s\nstep.m32\t3\tms\n"
    . "step.gpus_2048\t1.5\tms\nstep.gpus_8192\t1.5\tms\n";
close $bench;
is(system("sh $plot cost <bench.tsv 2>/dev/null"), 0, 'benchmarks are plotted');
is(contents('cost/cost.tsv'), "# gpus\tms\n2048\t1.5\n8192\t1.5\n\n\n# micro_batches\tms\n16\t1.5\n32\t3\n",
    'a block over GPUs, one over micro-batches');
isnt(system("sh $plot cost </dev/null 2>/dev/null"), 0, 'nothing to plot is an error');
done_testing();
