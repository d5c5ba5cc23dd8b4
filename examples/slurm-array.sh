#!/bin/sh
# SPDX-License-Identifier: MIT
# A sweep over a Slurm array: sbatch slurm-array.sh. A task that is killed, requeued or submitted
# again goes on where it stopped. The table, once all are done:
#   trainyard db merge study.db study-?.db
#   trainyard sweep ARGUMENTS --db study.db --resume
#SBATCH --job-name=sweep
#SBATCH --array=0-3
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --requeue
trainyard sweep --model llama2-7b --cluster dgx-a100 --gpus 8,16 --gbs 64 --seq 4096 \
    --db 'study-{shard}.db' --shard auto --resume --jobs "${SLURM_CPUS_PER_TASK:-1}"
