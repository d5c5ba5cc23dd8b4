#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The command-line tool from outside: exit codes, messages that name file and field, JSON, ranges,
# the agreement of flags, --set and files.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $trainyard = ($ENV{B} // 'build') . '/trainyard';
my $dir = tempdir(CLEANUP => 1);
my @job = qw(--model llama3-8b --cluster dgx-h100);
my @plan = (@job, qw(--gpus 64 --tp 2 --gbs 64 --seq 4096));

# Runs the tool; returns (exit status, standard output, standard error).
sub run {
    my @args = map { my $arg = $_; $arg =~ s/'/'\\''/g; "'$arg'" } @_;
    my $out = `$trainyard @args 2>$dir/stderr`;
    my $status = $? >> 8;
    $status = "signal $?" if $? & 127;
    open my $file, '<', "$dir/stderr" or die;
    local $/;
    return ($status, $out, scalar <$file>);
}

# The command must end with the status, and what it says must match.
sub refused {
    my ($what, $want, $pattern, @args) = @_;
    my ($status, $out, $err) = run(@args);
    is($status, $want, "$what: status $want");
    like($err, $pattern, "$what: message");
    is($out, '', "$what: nothing on standard output");
}

sub json {
    my ($status, $out, $err) = run(@_, '--json');
    my $value = eval { decode_json($out) };
    diag("no JSON from @_: $@ $err") unless $value;
    return ($value // {}, $status, $err);
}

sub spit {
    my ($name, $text) = @_;
    open my $file, '>', "$dir/$name" or die;
    print $file $text;
    close $file;
    return "$dir/$name";
}

# ---- the command line ------------------------------------------------------------------------
refused('no command', 2, qr/usage/);
refused('misspelt command', 2, qr/did you mean predict/, 'predct');
refused('show of nothing', 2, qr/show: needs one of model, cluster/, 'show');
refused('list of nothing', 2, qr/list: needs one of .*sites/, 'list');
refused('calibrate without a sub-command', 2, qr/needs a sub-command: import/, 'calibrate');
refused('empty value', 2, qr/--measured: its value is empty/, 'explain', '--measured', '');
refused('misspelt option', 2, qr/--gups; did you mean --gpus/, 'predict', '--gups', 8);
refused('a rung of another command', 2, qr/full.*predict/, 'sweep', @plan, '--rung', 'full');
refused('a scenario without its rung', 2, qr/--rung full/, 'predict', @plan, '--scenario', 'x');
refused('schedule that nobody has', 2, qr/--schedule spiral.*gpipe, 1f1b/s,
    'predict', @plan, '--schedule', 'spiral');
refused('size that follows from others', 2, qr/--dp is no input: it is gpus/,
    'predict', @plan, '--dp', 8);
refused('a layout that is none', 2, qr/--layout.*character 3: legal are E, t, m, L/s,
    'predict', @plan, '--layout', 'Etx');
refused('a layout of a list that is none', 2, qr/--layout Etx: "Etx", character 3/, 'sweep', @plan, '--layout', 'even,Etx');
refused('a layout twice', 2, qr/--layout: names even twice/, 'sweep', @plan, '--layout', 'even,balanced,even');
my ($mixed) = json('sweep', @plan, qw(--tp 1 --pp 4 --vpp 1 --all --recompute none --mbs 1 --layout),
    'even,balanced,Et*8,|(t*8|)*2,t*8L');
is(join(' ', sort map { $_->{plan}{layout} || 'even' } @{ $mixed->{plans} }),
    'Et*7|(t*9|)*2,t*7L Et*8|(t*8|)*2,t*8L even', 'three layouts in one sweep');
my ($balanced) = json('predict', @plan, qw(--pp 4 --layout balanced));
is($balanced->{resolved_plan}{layout}, 'Et*7|(t*9|)*2,t*7L', 'a balanced layout is written out');
refused('option without value', 2, qr/--tp.*needs a value/, 'predict', @job, '--tp');
refused('stray argument', 2, qr/unexpected argument "x"/, 'predict', 'x');
refused('option of another command', 2, qr/unknown option --out/, 'predict', '--out', 'x');
refused('--set without =', 2, qr/PATH=VALUE/, 'predict', @plan, '--set', 'plan.tp');
refused('--set of an unknown kind', 2, qr/job\.x.*model\., cluster/, 'predict', @plan,
    '--set', 'job.x=1');
refused('--set of an unknown field', 2, qr/cluster\.network\.nik/, 'predict', @plan,
    '--set', 'cluster.network.nik=1 GB/s');
refused('predict without a model', 2, qr/--model.*not given/, 'predict');
refused('unknown convention', 2, qr/--flops.*megatron/, 'predict', @plan, '--flops', 'x');
for my $bad ('nan', '-1', '1e400', 'x', '', '2.5', '99999999999999999999') {
    refused("--tp '$bad'", 2, qr/--tp/, 'predict', @job, '--tp', $bad, '--gpus', 8);
}
for my $bad ('400', '400 GB', 'nan GB/s', '-4 GB/s', '1e400 GB/s') {
    refused("NIC of '$bad'", 2, qr/network\.nic/, 'predict', @plan,
        '--set', "cluster.network.nic=$bad");
}
for my $command (qw(predict sweep report show list pool help version)) {
    my ($status, $out) = run($command, '--help');
    is($status, 0, "$command --help: status 0");
    like($out, qr/^usage: trainyard $command/, "$command --help: text");
    is((run('help', $command))[1], $out, "help $command is the same");
}

# ---- files -----------------------------------------------------------------------------------
my $cluster = '{"gpu": "h100-sxm", "gpus_per_node": 8, "network": {"nic": %s}}';
my %broken = (
    'no unit' => [sprintf($cluster, '"400"'), qr/network\.nic/],
    'a number without unit' => [sprintf($cluster, '400'), qr/network\.nic/],
    'another unit' => [sprintf($cluster, '"400 GiB"'), qr/network\.nic/],
    'a negative rate' => [sprintf($cluster, '"-400 Gb/s"'), qr/network\.nic/],
    'a rate beyond double' => [sprintf($cluster, '1e400'), qr/network\.nic|number/],
    'NaN' => [sprintf($cluster, 'NaN'), qr/broken\.json/],
    'an unknown key' => [sprintf($cluster, '"400 Gb/s", "nics": 3'), qr/nics/],
    'no closing brace' => ['{"gpu": "h100-sxm"', qr/broken\.json/],
    'nothing' => ['', qr/broken\.json/],
    'nesting 300 deep' => ['[' x 300 . ']' x 300, qr/nest/],
    'an unknown GPU' => ['{"gpu": "h1000"}', qr/gpu.*h1000/s],
);
for my $what (sort keys %broken) {
    my ($text, $pattern) = @{$broken{$what}};
    my $file = spit('broken.json', $text);
    refused("cluster file with $what", 2, qr/broken\.json/, 'show', 'cluster', $file);
    refused("cluster file with $what, place", 2, $pattern, 'show', 'cluster', $file);
}
my $huge = "$dir/huge.json";
open my $sparse, '>', $huge or die;
truncate $sparse, 1 << 30 or die;
close $sparse;
refused('file of 1 GB', 2, qr/huge\.json/, 'show', 'model', $huge);
refused('folder as a file', 2, qr/\Q$dir\E/, 'show', 'model', $dir);
refused('unknown model', 2, qr/llama9/, 'predict', '--model', 'llama9', '--cluster', 'dgx-h100');
refused('missing file', 2, qr/none\.json/, 'show', 'model', "$dir/none.json");
refused('model type that is not modelled', 2, qr/odd\.json.*mamba/s, 'show', 'model',
    spit('odd.json', '{"model_type": "mamba", "hidden_size": 64}'));
refused('plan file with a wrong name', 2, qr/plan\.json.*tpp/s, 'show', 'plan',
    spit('plan.json', '{"tpp": 2}'));

# ---- show and list ---------------------------------------------------------------------------
# Llama-3-8B: 2 x 128256 x 4096 + 32 (4096 (4096 + 2 x 1024 + 4096) + 3 x 4096 x 14336 + 2 x 4096)
# + 4096 parameters.
my ($model) = json('show', 'model', 'llama3-8b');
is($model->{params_total}, 8030261248, 'parameters of llama3-8b');
is($model->{params_embedding}, 128256 * 4096, 'its embedding');
is($model->{params_active}, 8030261248, 'all of them active');
my ($wider) = json('show', 'model', 'llama3-8b', '--set', 'model.vocab=128257');
is($wider->{params_total}, 8030261248 + 2 * 4096, 'one more row in both tables');
for my $kind (qw(models clusters gpus profiles)) {
    my ($names, $status) = json('list', $kind);
    is($status, 0, "list $kind");
    ok(ref $names eq 'ARRAY' && @$names > 0, "list $kind --json is a list");
}
refused('list of nothing', 2, qr/did you mean models/, 'list', 'model');
for my $kind (['cluster', 'dgx-h100'], ['gpu', 'h100-sxm']) {
    my ($status, $out) = run('show', @$kind, '--json');
    my $again = (run('show', $kind->[0], spit('again.json', $out), '--json'))[1];
    is($again, $out, "show $kind->[0] --json is read back to the same");
}
my ($status, $out, $err) = run('show', 'model', 'llama3-8b', '--set', 'cluster.nodes=4');
like($err, qr/unused: cluster\.nodes=4/, 'an input that no part of the answer reads is named');

($status, $out) = run('version');
is($status, 0, 'version: status 0');
like($out, qr/^trainyard \d+\.\d+\.\d+\ncompiler .*\nflags .*cJSON \d.*SQLite \d.*gnuplot.*cuda +\S/s,
    'version: what a bug report needs');
for my $kind (['models', 'parameters'], ['clusters', 'NIC'], ['gpus', 'BF16'], ['stacks', '']) {
    my ($code, $text) = run('list', $kind->[0]);
    my @odd = grep { !/$kind->[1]/ } split /\n/, $text;
    is_deeply([$code, @odd], [0], "list $kind->[0]: every line says what it is");
}
($status, $out) = run('show', 'cluster', 'dgx-h100');
like($out, qr/^network\.nic +50 GB\/s/m, 'show cluster: a quantity with its unit');
like($out, qr/^network\.latency +- +.*default/m, 'show cluster: what is left to its default');
($status, $out) = run('show', 'profile', '--cluster', 'dgx-h100');
like($out, qr/^name +preset-hopper/m, 'show profile: preset of the GPU');
my ($shown) = json('show', 'plan', @plan);
is($shown->{dp} // $shown->{sharding}, 'zero1', 'show plan with model and cluster is resolved');
is((run('show', 'plan', @job, qw(--gpus 8 --tp 3)))[0], 3, 'show plan: broken rules, status 3');
refused('show of nothing', 2, qr/not one of model/, 'show', 'thing');
refused('show gpu without name', 2, qr/list gpus/, 'show', 'gpu');

# ---- predict ---------------------------------------------------------------------------------
my ($answer, $code) = json('predict', @plan);
is($code, 0, 'predict: status 0');
for my $key (qw(feasible violations fit headroom_bytes largest_component step_time_s tokens_per_s
    tokens_per_s_per_gpu model_tflops_per_gpu mfu flop_convention breakdown_s interval_80
    memory_bytes groups profile stack resolved_plan defaulted uncalibrated)) {
    ok(exists $answer->{$key}, "predict --json has $key");
}
my $sum = 0;
$sum += $_ for values %{$answer->{breakdown_s}};
cmp_ok(abs($sum / $answer->{step_time_s} - 1), '<', 1e-12, 'the breakdown adds up to the step');
is($answer->{resolved_plan}{gbs}, 64, 'the plan is resolved');
# tokens/s = gbs x seq / step, by definition.
cmp_ok(abs($answer->{tokens_per_s} * $answer->{step_time_s} / (64 * 4096) - 1), '<', 1e-12,
    'tokens/s follow from the step');
my @shown = map { $_->{effect_pct} } grep { defined $_->{effect_pct} } @{$answer->{defaulted}};
is_deeply(\@shown, [sort { abs($b) <=> abs($a) } @shown], 'assumptions by falling effect');

my $file = spit('plan.json', '{"gpus": 64, "tp": 2, "gbs": 64, "seq": 4096}');
my $flags = (run('predict', @plan, '--json'))[1];
is((run('predict', @job, '--plan', $file, '--json'))[1], $flags, 'a plan file equals its flags');
is((run('predict', @job, map({ ('--set', "plan.$_") } qw(gpus=64 tp=2 gbs=64 seq=4096)),
    '--json'))[1], $flags, '--set equals flags');
is((run('predict', @job, '--plan', $file, '--tp', 4, '--json'))[1],
    (run('predict', @plan, '--tp', 4, '--json'))[1], 'a flag wins over the file');
my ($tokens) = json('predict', @job, qw(--gpus 64 --seq 4096 --gbs 4Mtok));
is($tokens->{resolved_plan}{gbs}, 1024, '4 Mtok at 4096: 976.6 sequences, of 928..1025 1024');
my ($roomy) = json('predict', @plan, '--set', 'cluster.gpu.memory.size=160 GB');
cmp_ok($roomy->{headroom_bytes}, '>', $answer->{headroom_bytes}, 'more memory, more headroom');

($status, $out) = run('predict', @job, qw(--gpus 60 --tp 5 --pp 3));
is($status, 3, 'a plan that breaks rules: status 3');
like($out, qr/heads.*legal/s, 'broken rules come with the legal values');
my ($broken, $exit) = json('predict', @job, qw(--gpus 60 --tp 5 --pp 3));
is($exit, 3, 'the same with --json');
ok(!$broken->{feasible} && @{$broken->{violations}} >= 2, 'every broken rule at once');
is($broken->{step_time_s}, undef, 'and no time');
($broken, $exit) = json('predict', qw(--model llama3-405b --cluster dgx-h100 --gpus 8 --gbs 8));
is($exit, 3, '405B on 8 GPUs: status 3');
is($broken->{fit}, 'no', 'it does not fit');
cmp_ok($broken->{headroom_bytes}, '<', 0, 'and says how much is missing');

($status, $out) = run('predict', @plan);
like($out, qr/^limited by \w+: \d+ %/m, 'text: what limits the step');
like($out, qr/^not calibrated$/m, 'text: presets are named as such');
my $percent = 0;
$percent += $1 while $out =~ /^  \w+ +[\d.]+ (?:m|u|)s +([\d.]+) %/mg;
cmp_ok(abs($percent - 100), '<', 1, 'text: the shares add up');
($status, $out) = run('predict', @plan, '--rung', 'bound');
like($out, qr/step time +\S+ \w+ at least/, 'the bound says that it is one');
my ($bound) = json('predict', @plan, '--rung', 'bound');
is($bound->{step_time_s}, undef, 'the bound rung gives no step time');
is((run('predict', @plan, '--db', "$dir/one.db"))[0], 0, 'predict --db');
is((run('report', '--db', "$dir/one.db", '--out', "$dir/one"))[0], 0, 'its report');
isnt((run('predict', @plan, '--db', "$dir/no/such.db"))[0], 0, 'a database that cannot be made');
($status, $out) = run('predict', @plan, '--cp-scheme', 'ulysses');
like($out, qr/without effect.*cp_scheme +ulysses/s, 'a flag without effect is named');

# ---- sweep and report ------------------------------------------------------------------------
my @space = (@job, qw(--gbs 64 --seq 4096));
my ($sweep, $swept) = json('sweep', @space, '--gpus', '16..32', '--db', "$dir/yard.db");
is($swept, 0, 'sweep: status 0');
my %counts = map { $_->{plan}{gpus} => 1 } @{$sweep->{plans}};
is(join(' ', sort keys %counts), '16 24 32', '16..32 are whole nodes of 8')
    if $counts{24};
ok($counts{16} && $counts{32}, 'plans of both ends of the range');
cmp_ok($sweep->{evaluated}, '>', 0, 'plans were evaluated');
ok(ref $sweep->{rejected} eq 'HASH', 'rejections are counted by reason');
my @speeds = map { $_->{tokens_per_s_per_gpu} } grep { $_->{plan}{gpus} == 32 } @{$sweep->{plans}};
is_deeply(\@speeds, [sort { $b <=> $a } @speeds], 'ranked by tokens/s/GPU');
my ($narrow) = json('sweep', @space, '--tp', '1,2', '--pp', '1..2', '--recompute', 'none,full',
    qw(--gpus 32 --all --top 1000));
is_deeply([grep { $_->{plan}{tp} > 2 || $_->{plan}{pp} > 2
    || $_->{plan}{recompute} eq 'selective' } @{$narrow->{plans}}], [], 'lists limit the knobs');

# ---- offload ------------------------------------------------------------------------------------
my ($moved) = json('predict', @plan, '--offload', 'activations');
my ($stayed) = json('predict', @plan);
cmp_ok($moved->{memory_bytes}{peak}, '<', $stayed->{memory_bytes}{peak}, 'offload: less memory');
cmp_ok($moved->{memory_bytes}{stages}[0]{host}, '>', 0, 'what is on the host is told');
cmp_ok($moved->{step_time_s}, '>=', $stayed->{step_time_s}, 'and never faster');
is($stayed->{breakdown_s}{offload}, 0, 'none unasked');
my ($both) = json('sweep', @space, '--tp', '1,2', '--pp', '1', '--offload', 'none,optimizer',
    qw(--gpus 32 --all --top 1000));
my %seen = map { $_->{plan}{offload} => 1 } @{$both->{plans}};
is_deeply([sort keys %seen], ['none', 'optimizer'], 'a sweep searches listed values');
my ($orders) = json('sweep', @space, qw(--tp 2 --pp 4 --gpus 32 --mbs 1 --all --top 1000),
    qw(--vpp), q(1,2), q(--schedule), '1f1b,interleaved,zb-v,dualpipe');
my %order = map { $_->{plan}{schedule} => $_->{plan}{vpp} // 1 } @{$orders->{plans}};
is_deeply(\%order, {'1f1b' => 1, 'interleaved' => 2, 'zb-v' => 2, 'dualpipe' => 1},
    'a sweep searches schedules, each with its chunks');
is((run('sweep', @space, qw(--gpus 32 --json --jobs 1)))[1],
    (run('sweep', @space, qw(--gpus 32 --json --jobs 4)))[1], 'the same at 1 and 4 threads');
# 24 and 56 replicas do not divide 64 sequences.
($status, $out) = run('sweep', @space, '--gpus', '16,24,56', qw(--tp 1 --pp 1
    --cp 1 --top 1));
is($status, 0, 'sweep as text: status 0');
like($out, qr/best plan of each GPU count.*16 GPUs, by tokens.*no feasible plan with 24, 56 GPUs/s,
    'a table per count, and the counts without one');
refused('sweep without GPUs', 2, qr/gpus/, 'sweep', @space);
refused('sweep by bounds', 2, qr/--rung bound: not built yet/, 'sweep', @space,
    qw(--gpus 16 --rung bound));
refused('empty range', 2, qr/--gpus.*no multiple of 8/, 'sweep', @space, '--gpus', '9..15');
for my $bad ('8..', '0..8', '8..4', '8..16*1', '8,,16', '1..x') {
    refused("GPUs '$bad'", 2, qr/--gpus/, 'sweep', @space, '--gpus', $bad);
}
is((run('sweep', qw(--model llama3-405b --cluster dgx-h100 --gpus 8 --gbs 8)))[0], 3,
    'no plan fits: status 3');
($status) = run('report', '--db', "$dir/yard.db", '--out', "$dir/report");
is($status, 0, 'report: status 0');
ok(-s "$dir/report/index.html", 'it wrote a page');
refused('report without database', 2, qr/--db/, 'report', '--out', "$dir/x");
isnt((run('report', '--db', "$dir/none.db", '--out', "$dir/x"))[0], 0, 'no such database');
refused('report of a text file', 2, qr/plan\.json/, 'report', '--db', $file, '--out', "$dir/x");

# ---- what-if -----------------------------------------------------------------------------------
my @what = ('whatif', '--model', 'llama3-8b', '--cluster', 'dgx-h100', qw(--gpus 32 --gbs 64));
refused('nothing to vary', 2, qr/needs a setting to vary/, @what);
refused('a range that falls', 2, qr/is not a list/, @what, '--set', 'cluster.network.nic=800..100 Gb/s');
my ($whatif) = json(@what, '--set', 'cluster.network.nic=100..400 Gb/s', '--tp', '2', '--pp', '2');
is(scalar @{$whatif->{points}}, 3, 'doublings from 100 to 400: three points');
is($whatif->{points}[2]{settings}{'network.nic'}, '400 Gb/s', 'the values as --set takes them');
is($whatif->{points}[2]{change_pct}, 0, 'dgx-h100 has 400 Gb/s: no change there');
ok($whatif->{points}[0]{tokens_per_s_per_gpu} <= $whatif->{points}[1]{tokens_per_s_per_gpu},
    'a faster NIC is never slower');
($whatif) = json(@what, '--set', 'cluster.gpu=a100-sxm-80gb,h200-sxm', '--set', 'plan.seq=2048,4096');
is(scalar @{$whatif->{points}}, 4, 'two names by two numbers: four points');
my ($one) = json('predict', qw(--model llama3-8b --cluster dgx-h100 --gpus 32 --gbs 64 --tp 2 --pp 2),
    '--set', 'cluster.network.nic=100 Gb/s');
($whatif) = json(@what, '--set', 'cluster.network.nic=100,400 Gb/s', qw(--keep-plan --tp 2 --pp 2
    --vpp 1 --mbs 1 --recompute none));
is($whatif->{points}[0]{step_time_s}, $one->{step_time_s}, 'a kept plan: as predict says');

# ---- suggestions -----------------------------------------------------------------------------
my @large = qw(--model llama3-70b --cluster dgx-h100 --gpus 512 --gbs 512);
my ($refused, $said) = run('predict', @large);
is($refused, 3, 'no layout given, and one replica per GPU does not fit: status 3');
like($said, qr/plans that fit, with what is fixed:( --[a-z]+ \w+)+/, 'a plan that fits is named');
my @found = $said =~ /(--(?:tp|pp|vpp|cp|ep|mbs|recompute)) (\w+)/g;
($status) = run('predict', @large, @found);
is($status, 0, "and it does: @found");
($status, $said) = run('sweep', qw(--model llama3-405b --cluster dgx-h100 --gpus 16 --gbs 16));
is($status, 3, 'nothing fits: status 3');
like($said, qr/closest:\n  16 GPUs .* GiB missing/, 'the plans that come closest are named');

# ---- detect ----------------------------------------------------------------------------------
my $nodes = "$dir/nodes.txt";
open my $dump, '>', $nodes or die;
print $dump "NodeName=n[1-4] Gres=gpu:h200:8 State=IDLE\nNodeName=n5 Gres=gpu:h200:8 State=DOWN\n";
close $dump;
my ($detected, $table) = run('detect', $nodes, '--out', "$dir/found.json");
is($detected, 0, 'detect: status 0');
like($table, qr/^nodes +4 +stated +\Q$nodes\E \(4 machines\)$/m, 'a value, its trust, its place');
like($table, qr/n5 \(down\)/, 'a machine left out is named');
like($table, qr/^  power_limit: nvidia-smi/m, 'a gap says where to get the value');
is((run('predict', qw(--model llama3-8b --gpus 32 --gbs 32 --cluster), "$dir/found.json"))[0], 0,
    'predict takes the cluster');
is(decode_json((run('detect', $nodes, '--json'))[1])->{gpu}, 'h200-sxm', 'detect --json: the file');
open $dump, '>', $nodes or die;
print $dump "NodeName=n[1-4] Gres=gpu:8\n";
close $dump;
unlink "$dir/found.json";
my ($unknown, undef, $why) = run('detect', $nodes, '--out', "$dir/found.json");
is($unknown, 2, 'no GPU named: status 2');
like($why, qr/--gpu NAME/, '... which says what to give');
ok(!-e "$dir/found.json", '... and writes no file');
is((run('detect', $nodes, '--gpu', 'h100-sxm'))[0], 0, '--gpu gives it');
refused('detect of a missing file', 1, qr/nosuch/, 'detect', "$dir/nosuch");
refused('detect of a plan', 2, qr/JSON that names no machines/, 'detect', $file);

# ---- output that cannot be written -----------------------------------------------------------
is(system("$trainyard list models >/dev/full 2>/dev/null") >> 8, 1, 'full disk: status 1');
is(system("$trainyard list models >&- 2>/dev/null") >> 8, 1, 'closed output: status 1');
system("(sleep 0.3; $trainyard list models 2>/dev/null; echo \$? >$dir/status) | true");
is(do { open my $f, '<', "$dir/status" or die; local $/; <$f> + 0 }, 1, 'closed pipe: status 1');
# ---- pool ------------------------------------------------------------------------------------
# Four GPUs: A 3 GPUs 10 s, B 4 GPUs 5 s, C 1 GPU 8 s, all at 0. fifo: ends 10, 15, 23.
my $trace = spit('trace.csv', "job_id,submit_s,gpus,duration_s\nA,0,3,10\nB,0,4,5\nC,0,1,8\n");
my @pool = ('pool', '--trace', $trace, '--gpus', 4);
my ($replay, $replayed) = json(@pool);
is($replayed, 0, 'pool: status 0');
is($replay->{policy}, 'fifo', 'pool: fifo by default');
is($replay->{makespan_s}, 23, 'pool: makespan');
cmp_ok(abs($replay->{jct_s}{mean} - 16), '<', 1e-12, 'pool: mean completion');
is($replay->{trace}{rows}, 3, 'pool: rows of the trace');
my ($easy) = json(@pool, '--policy', 'easy');
is($easy->{jct_s}{max}, 15, 'pool: easy lets C pass by');
my $times = "$dir/times.csv";
is((run(@pool, '--out', $times))[0], 0, 'pool --out: status 0');
open my $rows, '<', $times or die;
is((split /,/, (<$rows>)[2])[5], 15, 'pool --out: end of B');
like((run(@pool, '--policy', 'all'))[1], qr/^fifo .*^elastic /ms, 'pool --policy all: a table');
like((run(@pool, '--policy', 'fifo', '--explain', 'B'))[1], qr/too few free GPUs.*at 10 s/s,
    'pool --explain: why and until when');
like((run(@pool, '--explain', 'C', '--at', '1'))[1], qr/the policy lets others/,
    'pool --explain: behind the head');
is((json('pool', '--trace', $trace, '--cluster', 'dgx-h100', '--gpus', 16))[1], 0,
    'pool on a built-in cluster');
# Jobs and events in a database, and a report of it. fifo: 3 of 4 GPUs to 10, 4 to 15, 1 to 23; B and
# C wait to 10, C to 15.
my $replays = "$dir/pool.db";
is((run(@pool, '--policy', 'fifo,easy', '--db', $replays))[0], 0, 'pool --db: status 0');
is((run('report', '--db', $replays, '--out', "$dir/pool"))[0], 0, 'a report of replays');
open my $waiting, '<', "$dir/pool/waiting.tsv" or die;
my @points = map { [ split /\t/ ] } grep { /^[0-9]/ } <$waiting>;
is($points[0][1] + 0, 2, 'plot of the queue: two wait at first');
open my $policies, '<', "$dir/pool/policies.tsv" or die;
cmp_ok(abs((split /\t/, (<$policies>)[1])[0] - 16 / 3600), '<', 1e-12, 'plot of policies: mean of fifo');
SKIP: {
    skip 'sqlite3 is not installed', 2 if system('sqlite3 --version >/dev/null 2>&1');
    is(`sqlite3 $replays "SELECT end_s FROM pool_job WHERE run = 0 AND name = 'B'"`, "15.0\n",
        'pool_job: end of B');
    is(`sqlite3 $replays "SELECT count(*) FROM pool_event WHERE run = 0"`, "9\n",
        'pool_event: each job comes, starts and ends');
}
refused('pool --db --explain', 2, qr/--db/, @pool, '--db', $replays, '--explain', 'B');
# Elastic with a curve of the file: 8 GPUs at 1, 16 at 1.5: alone on 16 GPUs 30 s of work take 20 s.
my $curved = spit('curved.csv', "job_id,submit_s,gpus,duration_s,curve\nA,0,8,30,x\n");
my $curves = spit('curves.json', '{"jobs": [{"name": "x", "curve": {"8": 100, "16": 150}}]}');
my ($elastic) = json('pool', '--trace', $curved, '--gpus', 16, '--policy', 'elastic', '--curves', $curves);
is($elastic->{jct_s}{max}, 20, 'pool --curves: the speed of 16 GPUs');
refused('pool: a curve that is not there', 2, qr/no job "x"/, 'pool', '--trace', $curved, '--gpus', 16,
    '--curves', spit('nocurve.json', '{"jobs": [{"name": "y", "curve": {"8": 1}}]}'));
like((run(@pool, '--curves', $curves))[2], qr/unused: --curves/, 'pool: curves that no job names');
refused('pool without a trace', 2, qr/--trace/, 'pool', '--gpus', 4);
refused('pool without GPUs', 2, qr/--gpus N, --cluster C or --nodes/, 'pool', '--trace', $trace);
refused('pool: unknown policy', 2, qr/did you mean srtf/, @pool, '--policy', 'srttf');
refused('pool: a policy that is none', 2, qr/legal: all, fifo, /, @pool, '--policy', 'best');
refused('more threads than there can be', 2, qr/--jobs: "99999".*0 to 256/, 'sweep', @plan, '--jobs',
    99999);
refused('pool: unknown job', 2, qr/no job "Z"/, @pool, '--explain', 'Z');
refused('pool: half a node', 2, qr/multiple of 8/, 'pool', '--trace', $trace, '--cluster',
    'dgx-h100', '--gpus', 12);
refused('pool: no time', 2, qr/--restart.*"5 GB"/, @pool, '--restart', '5 GB');
refused('pool: no trace in the file', 2, qr/other\.csv.*submit_s, gpus/s, 'pool', '--gpus', 4,
    '--trace', spit('other.csv', "a,b\n1,2\n"));

# A second row of an option would never be reached: the first of a name is taken.
for my $command (map { /^  ([a-z]+) {2,}/ ? $1 : () } split /\n/, (run('help'))[1]) {
    my %rows;
    $rows{$_}++ for (run('help', $command))[1] =~ /^\s+(?:-\w, )?(--[a-z0-9-]+)\b/mg;
    is_deeply([grep { $rows{$_} > 1 } sort keys %rows], [], "help $command: each option once");
}

done_testing();
