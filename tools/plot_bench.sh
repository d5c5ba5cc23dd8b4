#!/bin/sh
# SPDX-License-Identifier: MIT
# Draws what a simulated step costs over GPUs and over micro-batches, from the lines of BENCH=step:
#
#   make -s bench BENCH=step | sh tools/plot_bench.sh FOLDER
#
# writes cost.tsv, cost.gp and, where gnuplot is, cost.svg into the folder.
set -e
[ $# -eq 1 ] || { echo "usage: make -s bench BENCH=step | sh tools/plot_bench.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
# Two blocks, which gnuplot calls index 0 and 1.
awk -F '\t' '
    $1 ~ /^step\.gpus_[0-9]+$/ && $3 == "ms" {sub(/^step\.gpus_/, "", $1); gpus = gpus $1 "\t" $2 "\n"}
    $1 ~ /^step\.m[0-9]+$/ && $3 == "ms" {sub(/^step\.m/, "", $1); micro = micro $1 "\t" $2 "\n"}
    END {
        if (gpus == "" || micro == "") {
            print "plot_bench: no lines step.gpus_N and step.mN in the input" > "/dev/stderr"
            exit 1
        }
        printf "# gpus\tms\n%s\n\n# micro_batches\tms\n%s", gpus, micro
    }' >cost.tsv
cat >cost.gp <<'G'
set terminal svg size 960,420 noenhanced background rgb '#ffffff'
set output 'cost.svg'
set logscale xy 2
set grid
set ylabel 'ms of a processor'
set yrange [0.25:*]
unset key
set multiplot layout 1,2 title 'One simulated step of Llama-3-405B, one rank per stage'
set xlabel 'GPUs, 16 micro-batches'
plot 'cost.tsv' index 0 using 1:2 with linespoints pt 7 lc rgb '#0072b2'
set xlabel 'micro-batches, 16,384 GPUs'
plot 'cost.tsv' index 1 using 1:2 with linespoints pt 7 lc rgb '#0072b2'
unset multiplot
G
if command -v gnuplot >/dev/null; then
    gnuplot -d cost.gp
else
    echo 'plot_bench: no gnuplot: cost.tsv and cost.gp are written' >&2
fi
