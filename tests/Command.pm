# SPDX-License-Identifier: MIT
# What test scripts share: runs the built program and reads its answers. Files go to $folder.
package Command;
use strict;
use warnings;
use Exporter 'import';
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

our @EXPORT = qw($trainyard $folder run json near spit);
our $trainyard = ($ENV{B} // 'build') . '/trainyard';
our $folder = tempdir(CLEANUP => 1);

# Runs the program; returns (exit status, standard output, standard error).
sub run {
    my $command = join ' ', map { my $word = $_; $word =~ s/'/'\\''/g; "'$word'" } @_;
    my $out = `$trainyard $command 2>$folder/err`;
    my $status = $? >> 8;
    open my $err, '<', "$folder/err" or die;
    return ($status, $out, join '', <$err>);
}

# The answer to a command with --json; {} where it failed.
sub json {
    my ($status, $out) = run(@_, '--json');
    return $status == 0 ? decode_json($out) : {};
}

# Equal to nine digits.
sub near {
    my ($got, $want, $what) = @_;
    cmp_ok(abs($got - $want), '<=', 1e-9 * abs $want, $what);
}

# Writes a file into $folder; returns its path.
sub spit {
    my ($name, $text) = @_;
    open my $file, '>', "$folder/$name" or die;
    print $file $text;
    close $file or die;
    return "$folder/$name";
}

1;
