#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The full rung from outside: scenarios are read, answered, refused by place.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $trainyard = abs_path(($ENV{B} // 'build') . '/trainyard');
my $dir = tempdir(CLEANUP => 1);
chdir $dir or die;

my $job = '--model llama3-8b --cluster dgx-h100 --gpus 32 --tp 2 --gbs 64 --seq 4096';

sub predict {
    my ($scenario) = @_;
    open my $file, '>', 's.json' or die;
    print $file $scenario;
    close $file;
    my $out = `$trainyard predict $job --rung full --scenario s.json --json 2>stderr`;
    return ($? >> 8, $out);
}

sub answer { my ($status, $out) = predict(@_); return $status == 0 ? decode_json($out) : {}; }

sub refused {
    my ($what, $why, $scenario) = @_;
    my ($status) = predict($scenario);
    my $said = `cat stderr`;
    ok($status == 2 && $said =~ $why, $what) or diag "status $status: $said";
}

# Every field of a cluster that only the full rung simulates is named where it has no effect: in text
# and in JSON, and not at rung full. The list is that of the help; a value beside the default each.
my %beside = (rails => 'on', planes => 2, leaves_per_pod => 1, pod_oversubscription => 2,
    routing => 'static', queue_pairs => 4, gpus_per_switch => 2);
my @full_alone = map { /^(\S+) .* full rung: / ? $1 : () } `$trainyard show cluster dgx-h100`;
is(scalar @full_alone, scalar keys %beside, 'fields of the full rung alone');
sub unused_fields {
    my $answer = decode_json(scalar `$trainyard predict $job @_ --json`);
    return join ' ', map { $_->{field} } @{$answer->{unused}};
}
for my $field (@full_alone) {
    my ($name) = $field =~ /(\w+)$/;
    my $set = "--set 'cluster.$field=$beside{$name}'";
    is(unused_fields($set), $field, "$field: noted as unused in JSON");
    like(scalar `$trainyard predict $job $set`,
        qr/without effect on this answer\n +\Q$field\E +given +only rung full simulates it/,
        '... and in text');
    is(unused_fields($set, '--rung full'), '', '... and used at rung full');
}
is(unused_fields('--set cluster.network.sharp=on', $_), 'network.sharp', "SHARP in a step: noted $_")
    for '', '--rung full';

my $even = answer('{}');
ok($even->{fabric}{folded}, 'nothing amiss: folded');
my $every = answer('{"unfold": true}');
ok(!$every->{fabric}{folded} && $every->{fabric}{ranks} == 32, 'every rank on request');
ok(abs($every->{step_time_s} / $even->{step_time_s} - 1) < 1e-9, '... gives the same time');
my %rows = map { ("$_->{group} $_->{level}", $_->{bytes}) } @{$every->{fabric}{traffic}};
ok($rows{'tp domain'} > 0 && $rows{'dp leaf'} > 0 && !exists $rows{'pp leaf'},
    'bytes by level: tp stays in the domain, dp leaves it, there is no pp');
my $slow = answer('{"speeds": [{"rank": 5, "ratio": 0.5}]}');
ok($slow->{step_time_s} > 1.5 * $even->{step_time_s} && $slow->{fabric}{slowest_rank} =~ /^[45]$/,
    'a rank of half the speed, and the pair it slows');
my $text = `$trainyard predict $job --rung full --scenario s.json`;
like($text, qr/full rung: 32 ranks simulated: ranks differ in speed.*tp +domain .*dp +leaf/s, 'as text');
my $mixed = answer('{"node_gpus": [{"node": 2, "nodes": 2, "gpu": "a100-sxm-80gb"}]}');
my $balanced = answer('{"node_gpus": [{"node": 2, "nodes": 2, "gpu": "a100-sxm-80gb"}],
    "balance": true}');
my $n = $balanced->{fabric}{n_micro};
ok($n->[0] > $n->[15] && $balanced->{step_time_s} < 0.8 * $mixed->{step_time_s},
    'two nodes of an older GPU get fewer micro-batches, and the step is shorter for it');
my $two = answer('{"others": [{"model": "llama3-8b", "plan": {"gpus": 16}, "nodes": [4, 5]}]}');
is(scalar @{$two->{fabric}{job_step_time_s}}, 2, 'another job beside it');

refused('no such key', qr/s\.json: sped: is no key of a scenario/, '{"sped": []}');
refused('a fault without ratio', qr/faults\[0\].*ratio/, '{"faults": [{"kind": "nic"}]}');
refused('a fault of nothing', qr/not one of nic/, '{"faults": [{"kind": "x", "ratio": 0}]}');
refused('a NIC that is not there', qr/nic 9\.0 does not exist/,
    '{"faults": [{"kind": "nic", "unit": 9, "ratio": 0}]}');
refused('a rank that is not there', qr/legal: above 0, of ranks 0 to 31/,
    '{"speeds": [{"rank": 32, "ratio": 0.5}]}');
refused('a place taken twice', qr/each of 0 to 31 once/,
    '{"places": [' . join(',', (0) x 32) . ']}');
refused('too few nodes', qr/needs 4/, '{"nodes": [0, 1]}');
refused('a node named twice', qr/has two ranks/, '{"nodes": [0, 1, 2, 2]}');
refused('micro-batches that do not add up', qr/adds up to/,
    '{"n_micro": [' . join(',', (1) x 16) . ']}');
done_testing();
