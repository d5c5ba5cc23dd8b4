#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
# Writes data/fabrics/CLUSTER.json, the tables that `trainyard comm` predicts from, out of
# data/micro/nccl: one file per cluster that index.json names, one table per measured file.
# usage: trainyard calibrate import --json data/micro/nccl/*.csv | perl tools/fabrics.pl FOLDER
# Left out: rejected points, and those marked cold, outlier or coarse. Points of one size (in and
# out of place) become their geometric mean. A table without "cluster" in the index stays out.
use strict;
use warnings;
use JSON::PP;

my $folder = shift or die "usage: fabrics.pl FOLDER\n";
open my $file, '<', 'data/micro/nccl/index.json' or die "index.json: $!\n";
my %entry = map { $_->{file} => $_ } @{ decode_json(join '', <$file>) };
close $file;

my (%sum, %n, %calculated);
while (<STDIN>) {
    my $record = decode_json($_);
    my $name = $record->{source}{file};
    next if $record->{rejected} || grep { /^(cold|outlier|coarse)$/ } @{ $record->{flags} };
    my $size = $record->{parameters}{size_bytes};
    $sum{$name}{$size} += log $record->{values}{time_s};
    $n{$name}{$size}++;
    $calculated{$name} ||= grep { $_ eq 'derived' } @{ $record->{flags} };
}

# One table as text.
sub table {
    my ($name) = @_;
    my $e = $entry{$name};
    my @size = sort { $a <=> $b } keys %{ $sum{$name} };
    my @time = map { sprintf '%.6g', 1e6 * exp($sum{$name}{$_} / $n{$name}{$_}) } @size;
    return sprintf qq(    {"op": "%s", "ranks": %d, "source": "%s", "calculated": %s,\n)
        . qq(     "size_bytes": [%s],\n     "time_us": [%s]}), $e->{op}, $e->{ranks},
        $e->{source}, $calculated{$name} ? 'true' : 'false', join(', ', @size), join ', ', @time;
}

my %of;
push @{ $of{ $entry{$_}{cluster} } }, $_ for grep { $entry{$_}{cluster} } sort keys %sum;
for my $cluster (sort keys %of) {
    open my $out, '>', "$folder/$cluster.json" or die "$folder/$cluster.json: $!\n";
    print $out qq({\n  "cluster": "$cluster",\n  "tables": [\n),
        join(",\n", map { table($_) } @{ $of{$cluster} }), "\n  ]\n}\n";
    close $out or die "$folder/$cluster.json: $!\n";
}
