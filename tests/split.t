#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# trainyard split on the command line: a division worked by hand, curves of searches, database and
# report, refusals.
use strict;
use warnings;
use lib 'tests';
use Command;
use JSON::PP;
use Test::More;

sub jobs {
    my ($name, @jobs) = @_;
    open my $file, '>', "$folder/$name" or die;
    print $file encode_json({ jobs => \@jobs });
    close $file or die;
    return "$folder/$name";
}
sub refused {
    my ($what, $want, $pattern, @command) = @_;
    my ($status, undef, $err) = run(@command);
    is($status, $want, "$what: status $want");
    like($err, $pattern, "$what: says why");
}

my @pool = qw(split --cluster dgx-h100 --gpus 32);

# ---- by hand: 4 nodes. Equal shares are 2 nodes: a 180, b 100. Sums of x / e of a + b nodes:
# 1+3: 100/180 + 140/100 = 1.956; 2+2: 2; 3+1: 240/180 + 60/100 = 1.933
my %a = (name => 'a', curve => { 8 => 100, 16 => 180, 24 => 240, 32 => 280 });
my %b = (name => 'b', curve => { 8 => 60, 16 => 100, 24 => 140, 32 => 150 });
my $two = jobs('two.json', \%a, \%b);
my $answer = json(@pool, '--jobs', $two);
is_deeply([ map { $_->{gpus} } @{ $answer->{jobs} } ], [ 16, 16 ], 'two and two nodes');
near($answer->{value}, 2, 'worth as much as equal shares');
ok($answer->{proven}, 'and nothing is better');
near($answer->{jobs}[0]{gain_tokens_per_s}{gpus}, 60, 'a third node would bring a 60 tokens/s');

# With weight 2 for b: 1+3: 100/180 + 2.8 = 3.356 is the best.
$answer = json(@pool, '--jobs', jobs('weight.json', \%a, { %b, weight => 2 }));
is_deeply([ map { $_->{gpus} } @{ $answer->{jobs} } ], [ 8, 24 ], 'a heavier job gets more');
near($answer->{value}, 100 / 180 + 2.8, 'its value by hand');
is($answer->{jobs}[1]{normalised}, 1.4, 'speed over an equal share');

# A deadline: b needs 140 tokens/s, 1.2096e7 tokens in a day.
my %due = (%b, tokens => 140 * 86400, deadline_days => 1);
$answer = json(@pool, '--jobs', jobs('due.json', \%a, \%due));
is($answer->{jobs}[1]{gpus}, 24, 'a deadline asks for three nodes');
near($answer->{jobs}[1]{finish_s}, 86400, 'and is just kept');
refused('a deadline nobody can keep', 3, qr/no division of 4 units keeps/, @pool, '--jobs',
    jobs('late.json', \%a, { %due, deadline_days => 0.1 }));

# Finish: a 1.8e6 tokens, b 1e6: 2+2 ends both at 1e4 s.
my @timed = ({ %a, tokens => 1.8e6 }, { %b, tokens => 1e6 });
$answer = json(@pool, qw(--objective finish --jobs), jobs('finish.json', @timed));
near($answer->{value}, 1e4, 'finish: both end at 10,000 s');
# Preparing b takes 36 core-hours, 32 cores: 4050 s. Three nodes for b: 4050 + 7142.86; a on one: 18000.
# Two and two: b at 14050, a at 10000.
$timed[1]{prepare_core_hours} = 36;
$answer = json(@pool, qw(--cores 32 --objective finish --jobs), jobs('prepare.json', @timed));
near($answer->{value}, 14050, 'b begins when it is prepared');
near($answer->{jobs}[1]{start_s}, 4050, 'at 4,050 s');
is($answer->{jobs}[0]{start_s}, 0, 'a at once');

# Input: b reads 1 MB a token of 10 tokens a sample, all 10 GB/s allow 1000 x 10 tokens/s; at 50 MB/s
# it gets 50 tokens/s, with half of its data cached 100.
my %fed = (%b, input => { sample_bytes => '10 MB', sample_tokens => 10, data_bytes => '1 TB' });
$answer = json(@pool, '--storage-rate', '50 MB/s', '--jobs', jobs('fed.json', \%a, \%fed));
is($answer->{jobs}[1]{limit}, 'storage', 'storage limits b');
near($answer->{jobs}[1]{tokens_per_s}, 50, 'to what it can read');
is($answer->{jobs}[0]{gpus}, 24, 'so a gets a node more');
$answer = json(@pool, '--storage-rate', '50 MB/s', '--cache', '500 GB', '--jobs', "$folder/fed.json");
near($answer->{jobs}[1]{tokens_per_s}, 100, 'half of the data cached doubles it');
near($answer->{jobs}[1]{cache_bytes}, 500e9, 'with all of the cache');

# ---- curves of searches ----
my @plan = (model => 'llama3-8b', plan => { gbs => 64, seq => 4096, tp => [ 1, 2 ], pp => 1, vpp => 1 });
my $searched = jobs('search.json', { name => 'x', @plan }, { name => 'y', @plan, min_gpus => 16 });
$answer = json(@pool, '--jobs', $searched);
is($answer->{jobs}[1]{gpus} >= 16, 1, 'at least 16 GPUs');
my ($point) = grep { $_->{gpus} == 16 } @{ $answer->{jobs}[0]{curve} };
my $sweep = json(qw(sweep --model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096),
    qw(--pp 1 --vpp 1 --tp), '1,2');
near($point->{tokens_per_s}, $sweep->{plans}[0]{tokens_per_s}, 'its curve is that of sweep');
is($answer->{jobs}[0]{plan}{gpus}, $answer->{jobs}[0]{gpus}, 'and the plan is told');

# ---- text, database, report ----
my ($status, $text) = run(@pool, '--jobs', $two, '--db', "$folder/s.db");
is($status, 0, 'into a database');
like($text, qr/^a +16 +180 +1\.000 /m, 'a row of text');
($status, $text) = run('report', '--db', "$folder/s.db", '--out', "$folder/report");
is($status, 0, 'a report of it');
ok(-s "$folder/report/shares.tsv" && -s "$folder/report/curves.gp", 'with its plots');

# ---- refusals ----
refused('no file', 2, qr/--jobs/, @pool);
refused('a missing file', 2, qr/none\.json/, @pool, '--jobs', "$folder/none.json");
refused('an unknown key', 2, qr/jobs\[0\].*legal/, @pool, '--jobs',
    jobs('key.json', { %a, wieght => 1 }));
refused('model and curve', 2, qr/either/, @pool, '--jobs', jobs('both.json', { %a, @plan }));
refused('neither', 2, qr/either/, @pool, '--jobs', jobs('neither.json', { name => 'z' }));
refused('a policy', 2, qr/legal: .*lru/, @pool, '--jobs',
    jobs('policy.json', { %a, input => { cache => 'mru' } }));
refused('a batch that is no number', 2, qr/gbs/, @pool, '--jobs',
    jobs('plan.json', { model => 'llama3-8b', plan => { gbs => 'many' } }));
refused('an objective', 2, qr/max-min/, @pool, '--jobs', $two, '--objective', 'fair');
refused('GPUs that are no whole nodes', 2, qr/multiple/, qw(split --cluster dgx-h100 --gpus 12 --jobs),
    $two);
refused('preparation', 2, qr/finish/, @pool, '--jobs', "$folder/prepare.json");
like((run(@pool, '--jobs', $two, '--storage-rate', '1 GB/s'))[2], qr/unused: --storage-rate/, 'says what has no effect');
done_testing;
