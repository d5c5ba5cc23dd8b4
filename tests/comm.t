#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# trainyard comm: predicted times, a log beside them, refusals.
use strict;
use warnings;
use lib 'tests';
use Command;
use JSON::PP;
use Test::More;


# dgx-h100 has a table of 8 GPUs: data/micro/nccl/h100-8x_nvlink_allreduce_dgxc.csv.
my $answer = json(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --sizes 1MiB..8GiB));
is(scalar @{ $answer->{sizes} }, 14, '1 MiB to 8 GiB in doublings');
is($answer->{sizes}[0]{size_bytes}, 1048576, 'the first');
cmp_ok($_->{low_s}, '<', $_->{time_s}, 'an interval below'),
    cmp_ok($_->{time_s}, '<', $_->{high_s}, '... and above') for $answer->{sizes}[0];
is($answer->{sizes}[13]{size_bytes}, 8589934592, 'the last');
my $last = $answer->{sizes}[13];
is_deeply([@$last{qw(origin algorithm protocol limit)}], [qw(table NVLS Simple nvlink)],
    'from a table, NVLS, bound by NVLink');
like($last->{source}, qr/dgxc-benchmarking/, 'with its source');
# the two printed rows of 8 GiB: 31317 us and 31319 us or so; busbw is 1.75 S/t by definition
cmp_ok(abs($last->{busbw_bytes_per_s} / (1.75 * 8589934592 / $last->{time_s}) - 1), '<', 1e-12,
    'busbw = 2 (n-1)/n S/t');
cmp_ok(abs($last->{busbw_bytes_per_s} / 480e9 - 1), '<', 0.01, 'about the 480 GB/s printed there');

my ($status, $out) = run(qw(comm -c aws-p5 --op alltoall --gpus 64 --sizes), '8,64KiB,1 GiB');
is($status, 0, 'a list of sizes');
like($out, qr/ 8 B .* 64 KiB .* 1 GiB /s, 'each of them');
like($out, qr/extrapolated/, 'without a table: said to be extrapolated');
like($out, qr/ 64 KiB .* -\d+\.\.\+\d+ % .* (neighbour|model)\b/, 'its interval and where it comes from');

# Beyond the last size of a table its rate goes on: 8 GiB of data/micro/nccl at 257 GB/s.
$answer = json(qw(comm --cluster dgx-a100-40gb --op alltoall --gpus 8 --sizes), '8GiB,64GiB');
is($answer->{sizes}[1]{origin}, 'lines', 'beyond a table');
cmp_ok(abs($answer->{sizes}[1]{time_s} / $answer->{sizes}[0]{time_s} / 8 - 1), '<', 0.05,
    '8 times the bytes, 8 times the time');

# A log of nccl-tests on 2 nodes whose large messages move at what one NIC of 400 Gb/s carries:
# algbw 45 GB/s, busbw 15/8 of it.
sub row {
    my ($size, $us) = @_;
    my $algbw = $size / $us / 1e3;
    my $half = sprintf '%10.2f %7.2f %7.2f %6d', $us, $algbw, $algbw * 15 / 8, 0;
    return sprintf "%14d %14d     float     sum      -1 %s %s\n", $size, $size / 4, $half, $half;
}
open my $log, '>', "$folder/nccl.log" or die;
print $log "# nThread 1 nGpus 1 minBytes 67108864 maxBytes 4294967296 step: 2(factor)\n#\n",
    "# Using devices\n",
    (map { sprintf "#  Rank %2d Group  0 Pid 1000 on node%d device %2d [0x18] NVIDIA H100 80GB HBM3\n",
        $_, $_ / 8, $_ % 8 } 0 .. 15),
    "#\n#                                                              out-of-place",
    "                       in-place\n",
    "#       size         count      type   redop    root     time   algbw   busbw #wrong",
    "     time   algbw   busbw #wrong\n",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       ",
    "     (us)  (GB/s)  (GB/s)\n",
    (map { row(2**$_, 2**$_ / 45e3 + 40) } 26 .. 32),
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 80\n";
close $log;
$answer = json(qw(comm --cluster dgx-h100 --op all_reduce --gpus 16 --compare), "$folder/nccl.log");
is($answer->{ranks}, 16, 'a log of 16 ranks');
is($answer->{n_low}, 7, 'all of its sizes are low');
is($answer->{sizes}[6]{verdict}, 'low', 'each says so');
cmp_ok(abs($answer->{sizes}[6]{measured_s} / (2**32 / 45e9 + 40e-6) - 1), '<', 1e-3, 'as measured');
like($answer->{cause}, qr/1 of its 8 NICs/, 'one NIC of eight');
($status, $out) = run(qw(comm --cluster dgx-h100 --compare), "$folder/nccl.log");
is($status, 0, 'a low number is an answer');
like($out, qr/0 of 7 sizes are normal, 7 low, 0 high\nLikely cause: .*NIC/, 'in words');
# The table that the answer comes from is normal by itself.
$answer = json(qw(comm --cluster hgx-h100-roce --compare),
    'data/micro/nccl/h100-16x_2node_roce_allreduce_oci.csv');
is_deeply([@$answer{qw(op ranks n_low n_high cause)}], ['all_reduce', 16, 0, 0, undef],
    'its own table is normal');

# By algorithm: the ring's 2 (n-1)/n S over 450 GB/s, to the latency of its 14 rounds of 3.4 us.
my $ran = json(qw(comm --cluster dgx-h100 --op all_reduce --gpus 8 --sizes 1GiB --algorithm ring))->[0];
ok(abs($ran->{one_flow_s} / (2 * 7 / 8 * 2**30 / 450e9 + 14 * 3.4e-6) - 1) < 1e-9, 'a ring by its sends');
ok(abs($ran->{send_by_send_s} / $ran->{one_flow_s} - 1) < 1e-9, '... both ways');
(my $ran_status, my $ran_text) = run(qw(comm --cluster dgx-h100 --op all_reduce --gpus 64 --sizes 1MiB --algorithm all));
like($ran_text, qr/ring .*tree .*nvls_tree .*two_level .*sharp/s, 'all algorithms that can');

sub refused {
    my ($what, $pattern, @args) = @_;
    my ($code, $text, $message) = run(@args);
    is($code, 2, "$what: status 2");
    like($message, $pattern, "$what: why");
}
my @ask = qw(comm --cluster dgx-h100 --op all_reduce --gpus 8);
refused('no operation', qr/--op: not given/, qw(comm --cluster dgx-h100 --gpus 8));
refused('a wrong one', qr/not one of all_reduce, all_gather/, qw(comm -c dgx-h100 --op sum --gpus 8));
refused('no GPUs', qr/--gpus: not given/, qw(comm --cluster dgx-h100 --op all_reduce));
refused('one GPU', qr/at least 2/, qw(comm --cluster dgx-h100 --op all_reduce --gpus 1));
refused('no cluster', qr/--cluster: not given/, qw(comm --op all_reduce --gpus 8));
refused('an unknown algorithm', qr/not one of all, auto, ring/, @ask, '--algorithm', 'x');
refused('a size without sense', qr/is no size/, @ask, '--sizes', '1MiB,x');
refused('a range that falls', qr/ends below/, @ask, '--sizes', '1GiB..1MiB');
refused('sizes with a log', qr/own sizes/, @ask, '--sizes', '1MiB', '--compare', "$folder/nccl.log");
refused('a log that is not there', qr/nowhere/, @ask, '--compare', "$folder/nowhere");
refused('a log without a table', qr/no benchmark output/, @ask, '--compare', 'README.md');
refused('a log of other ranks', qr/no measured size/, @ask, '--compare', "$folder/nccl.log");
done_testing();
