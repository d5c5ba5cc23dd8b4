/* SPDX-License-Identifier: MIT
 * The two tables of the tool. The parser, `--help` and the manual pages come from them; the flags
 * of a plan are not here, they come from ty_fields(TY_KIND_PLAN). */
#include "cli/cli.h"
#include <string.h>

const struct cli_command cli_commands[] = {
    {"predict", "--model M --cluster C [plan flags]", "speed, limits and memory of one plan",
     CLI_PREDICT, 0, cmd_predict,
     "Simulates one optimizer step and prints tokens/s, what the step is spent on, the memory of "
     "every pipeline stage and what was assumed.\n"
     "An infeasible plan prints every broken rule with the legal values, and the exit status is "
     "3."},
    {"explain", "--model M --cluster C [plan flags]", "why a step takes so long, what to change",
     CLI_EXPLAIN, 0, cmd_explain,
     "Simulates one step and prints its critical path, what each piece of it depends on, what 10 % "
     "more of every resource would give, and the step time and memory of every legal plan that "
     "differs in one knob, best first.\n"
     "With --measured, --log or --profile-trace it compares the prediction with what was measured "
     "and ranks the causes of the difference; a profile tells them apart (docs/explain.md)."},
    {"sweep", "--model M --cluster C --gpus RANGE [plan flags]",
     "all legal plans, ranked; --db keeps them", CLI_SWEEP, 0, cmd_sweep,
     "Tries every legal combination of tp, pp, vpp, cp, ep, mbs and recompute. A flag fixes a "
     "knob; a list (1,2,4,8) or a range (1..8, or 1..8*2 for doublings) limits it. etp, gbs, "
     "precision, sharding, schedule and layout (--layout even,balanced) are searched only when "
     "given as lists. --gpus 64..1024 means the multiples of a node or NVLink domain.\n"
     "Plans are ranked by tokens/s/GPU within each GPU count, or by --objective; ties go to fewer "
     "GPUs, then to the order of enumeration. --deadline, --budget, --headroom and --min-mfu are "
     "limits. --price adds money, --mtbf counts useful work only (docs/sizing.md)."},
    {"whatif", "--model M --cluster C --set PATH=VALUES [plan flags]",
     "what other hardware or settings would change", CLI_WHATIF, 0, cmd_whatif,
     "Crosses every --set that is a list (200,400 Gb/s), a range of doublings (100..800 Gb/s), of "
     "factors (100..800*1.5 Gb/s) or of steps (100..400+100 Gb/s), or a list of names "
     "(cluster.gpu=h100-sxm,h200-sxm), and searches the best plan at every point; plan flags fix "
     "or "
     "limit knobs as in sweep. The base is the command without those settings.\n"
     "One numeric setting: its knee, from where 1 % more buys less than 0.1 % of speed. Several: "
     "what each does alone. Every point says how likely it is to be faster than the base, and what "
     "a GPU-hour of it may cost more before a token costs more (docs/sizing.md). --db keeps the "
     "points, and report draws them; it is needed beyond 4,096 points."},
    {"size", "--model M --cluster C|--gpu A,B --tokens N --deadline TIME [plan flags]",
     "GPUs, days and money that a run needs", CLI_SIZE, 0, cmd_size,
     "The smallest number of GPUs, of each cluster or GPU type named, on which the model fits and "
     "the tokens are trained before the deadline and within the budget; the best plan is searched "
     "at every count as sweep does. Without either, the smallest on which it fits. Prints spare "
     "nodes, days and money with their 10 % and 90 % quantiles, the probability to be in time, and "
     "what was assumed. --phases FILE is a run of several phases with planned downtime "
     "(docs/formats.md, \"Job\"; docs/sizing.md).\n"
     "--db keeps the best plan, days and money at each count of --gpus, without it at 1/4 to 4 "
     "times the answer, a study for each machine; report draws speed and cost against GPUs.\n"
     "Of several machines the cheapest is taken where --price is given, else the one with fewest "
     "GPUs. The exit status is 3 when none does."},
    {"export", "launch --framework F --from DB#N|PLAN", "launch arguments of a plan", CLI_EXPORT, 1,
     cmd_export,
     "Prints what makes a framework run a plan: flags of Megatron-LM, TOML of torchtitan, JSON of "
     "DeepSpeed, overrides of NeMo, with the line that starts it. The plan is the N-th best of the "
     "last study in a database, or that of the flags, with --model and --cluster. A knob that the "
     "framework lacks is an error. predict --args FILE reads the same back (docs/launch.md)."},
    {"db", "merge OUT IN...", "the shards of a study in one file", CLI_DB, CLI_MAX_WORDS, cmd_db,
     "Adds the rows of the files IN, each with one study, to OUT, which is made when it is not "
     "there. Files of other inputs, arguments or another version are refused before anything is "
     "written. sweep --resume --db OUT with the arguments of the shards then computes what is "
     "missing and prints the table (docs/sweeps.md)."},
    {"report", "--db FILE --out FOLDER", "plots and a page from a database", CLI_REPORT, 0,
     cmd_report,
     "Draws what a sweep or prediction stored: index.html opens offline; every plot lies there as "
     "SVG and PNG with its gnuplot script and data."},
    {"validate", "--runs FILE", "predicted against measured runs", CLI_VALIDATE, 0, cmd_validate,
     "Predicts every run of a CSV table (docs/formats.md, \"runs\") and prints the error of the "
     "step time by source, GPU, stack, kind, family and scale, the error of the memory, and how "
     "well the order inside each sweep of layouts is predicted. Rows that cannot be predicted are "
     "listed with the reason.\n"
     "No measured cell is read for a prediction. \"trainyard show run ID --runs FILE\" prints the "
     "predict command of a row."},
    {"calibrate",
     "import FILE... | measure --out FILE | runs FILE... | fit --records FILE... | show PROFILE",
     "measurements into records and constants", CLI_CALIBRATE, CLI_MAX_WORDS, cmd_calibrate,
     "import reads training logs and benchmark results of many tools (docs/import.md lists them) "
     "and prints what it found: the plan as far as the log has it, the step time with what was "
     "dropped and why, and what is missing. --json prints one JSON object a line; --out writes "
     "that to a file.\n"
     "runs turns your own measured steps into a site: three ratios, of the time of kernels, of "
     "exposed communication and of the host, and shipped constants as far as published runs leave "
     "them open, that later predictions take with --site FILE. A FILE "
     "that ends in .csv is a table of runs (docs/formats.md, \"runs\"), any other a training log; "
     "for logs, and for a single run given by flags and --step-time or --tokens-per-s, give "
     "--model, --cluster, --stack and the plan flags the log lacks. One run is enough; "
     "docs/calibration.md shows what more of them bring. It prints the error before and after, "
     "the ratios of the site and the shipped constants that moved, what the runs leave open, and "
     "which further run would tell most; --out writes the site file.\n"
     "measure runs microbenchmarks of this machine within --budget and writes a record for each "
     "to --out as it comes: of the processor (GEMM, attention, memory traffic, copies and "
     "collectives between processes, decoding; one process a core), of the storage below --folder "
     "(reads, writes, fsync, the steps of a data loader), or of CUDA devices (by the program "
     "trainyard-measure, built by make CUDA=1; exit status 4 without it or without a device). "
     "--model and plan flags limit the shapes to those of that model.\n"
     "A file without anything usable is reported with the reason; the exit status is 2 when no "
     "file had anything.\n"
     "fit turns records of microbenchmarks (what import wrote, or the output of the tools itself) "
     "into a profile with the constants of the device and its links and the measured tables "
     "(docs/calibration.md); --cluster says what machine they are of. It prints how well each "
     "constant is known, which stand at a bound, and what was dropped and why. predict --profile "
     "uses the result.\n"
     "show draws what was measured, the fit and its residuals into the folder of --out."},
    {"comm", "--cluster C --op OP --gpus N", "time of a collective; is a measured one normal",
     CLI_COMM, 0, cmd_comm,
     "Prints for each size of an all-reduce, all-gather, reduce-scatter, all-to-all or send how "
     "long it takes, the algorithm and bus bandwidth of nccl-tests, what limits it and where the "
     "number comes from: a measured table of this cluster, one of another, or NCCL's cost model.\n"
     "--compare LOG puts what nccl-tests, rccl-tests or another tool that calibrate import reads "
     "has measured beside it: normal, low or high, and the likely cause when low (docs/comm.md). "
     "Operation and GPUs are then those of the log unless given. A low number is an answer: the "
     "exit status is 0; a log without any is bad input.\n"
     "--algorithm runs it by its algorithm instead, as one weighted flow and send by send "
     "(docs/full-rung.md)."},
    {"monitor", "--model M --cluster C [plan flags] FILE...",
     "which resource of a running job departs from its prediction", CLI_MONITOR, CLI_MAX_WORDS,
     cmd_monitor,
     "Reads saved answers of the Prometheus API (query_range; query) and pages of exporters, among "
     "them those of dcgm-exporter and node_exporter, and puts step time, tokens/s, GPU and tensor "
     "activity, clock, power, memory, processors and disk reads beside the prediction: what "
     "departs by more than --tolerance, since when, on which GPU (docs/monitoring.md). A departure "
     "is an answer: the exit status is 0; files without any known metric are bad input.\n"
     "--print series prints the predicted values in Prometheus text form, --print dashboard a "
     "Grafana dashboard that shows measured beside predicted."},
    {"detect", "[FILE...]", "a cluster file from what is there", CLI_DETECT, CLI_MAX_WORDS,
     cmd_detect,
     "Without files: this machine, from /sys, /proc and nvidia-smi. With files: dumps of NCCL, "
     "nvidia-smi, rocm-smi, hwloc, Slurm, Kubernetes, ibnetdiscover and lldpctl in any mixture "
     "(docs/detect.md lists the commands); a folder is a copy of /sys and /proc.\n"
     "Prints every value with the place it was read at, what contradicts it, and what is missing "
     "and how to get it; with --json, the cluster file, which also keeps all that. The exit status "
     "is 2 when no source names the GPU; --gpu gives it."},
    {"pool", "--trace FILE --gpus RANGE|--cluster C|--nodes FILE",
     "a shared cluster under a job trace", CLI_POOL, 0, cmd_pool,
     "Replays the jobs of a trace under a policy: gangs, node and GPU types, parts of GPUs, "
     "preemption, quotas, failures of nodes. Prints completion times, waiting, utilisation, "
     "fragmentation, fairness. --policy all compares the policies, --out writes the times of each "
     "job, --db keeps them with every event for report, --explain says why a job waits and what "
     "would help. docs/pool.md describes the forms of "
     "traces, the policies and the measures.\n"
     "--gpus alone is a counting cluster: any free GPU serves any job; several counts show what "
     "more GPUs would bring. With --cluster, its nodes "
     "and leaf switches are used; --gpus limits them."},
    {"split", "--cluster C --jobs FILE", "one cluster divided among jobs", CLI_SPLIT, 0, cmd_split,
     "Divides the GPUs, CPU cores, cache and storage bandwidth of a cluster among the jobs of a "
     "file (docs/formats.md, \"Jobs\"): weights, least and most GPUs, deadlines, input. Each job's "
     "speed at every number of whole nodes comes from a search of its best plan, or from the file. "
     "Each is shown against an equal share of everything, with what limits it and what one more "
     "node, core, GiB of cache and GB/s would bring.\n"
     "throughput: most sum of weight x speed / speed on an equal share. max-min: the least of "
     "speed "
     "/ (weight x equal share) as high as can be. finish: the last job ends as early as can be; "
     "preparation on CPUs is put in the best order before training. docs/split.md says what is "
     "exact. The exit status is 3 when minima and deadlines cannot be kept."},
    {"show", "model|cluster|gpu|plan|profile|price|run [NAME|FILE]",
     "an input as trainyard understands it", CLI_SHOW, 2, cmd_show,
     "Prints every field with its unit; with --json, a file that trainyard reads back. show model "
     "adds exact parameter counts and the flop per token under each convention.\n"
     "show run ID --runs FILE prints the command line that predicts a run of a table."},
    {"list", "models|clusters|gpus|profiles|stacks|sites", "built-in names", CLI_LIST, 1, cmd_list,
     "One name a line with a short description."},
    {"help", "[COMMAND]", "this text, or the help of a command", CLI_HELP, 1, cmd_help,
     "With --man, the manual page in mdoc form."},
    {"version", "", "versions of the tool and what it was built with", CLI_VERSION, 0, cmd_version,
     "Put its output into bug reports."},
    {NULL, NULL, NULL, 0, 0, NULL, NULL}};

#define TO(member) offsetof(struct cli_args, member)
#define CLI_FEEDS  (CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_WHATIF | CLI_SIZE | CLI_MONITOR)
#define CLI_FAILS  (CLI_PREDICT | CLI_SWEEP | CLI_WHATIF | CLI_SIZE)

const struct cli_option cli_options[] = {
    {"model", 'm', CLI_TEXT, TO(model), "NAME|FILE",
     CLI_EXPORT | CLI_CALIBRATE | CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_WHATIF |
         CLI_SIZE | CLI_SHOW,
     "built-in model or a HuggingFace config.json"},
    {"trace", 't', CLI_TEXT, TO(pool.trace), "FILE", CLI_POOL, "trace of jobs"},
    {"trace", 0, CLI_TEXT, TO(trace), "FILE", CLI_PREDICT | CLI_EXPLAIN,
     "the simulated step as a Chrome trace, for ui.perfetto.dev"},
    {"max-events", 0, CLI_U64, TO(max_events), "N", CLI_PREDICT | CLI_EXPLAIN,
     "stop the simulation after so many events; default: 200000000"},
    {"max-time", 0, CLI_TEXT, TO(max_time), "TIME", CLI_PREDICT | CLI_EXPLAIN,
     "... at this simulated time (60 s); default: none"},
    {"max-memory", 0, CLI_TEXT, TO(max_memory), "SIZE", CLI_PREDICT | CLI_EXPLAIN,
     "... when it needs more memory (2 GiB); default: none"},
    {"format", 0, CLI_TEXT, TO(pool.format), "NAME", CLI_POOL,
     "form of the trace: native, sacct, philly, helios, acme, openb, muri, tiresias; default: "
     "auto"},
    {"queue", 0, CLI_TEXT, TO(pool.queue), "NAME", CLI_POOL, "only the jobs of this queue"},
    {"gpus", 'g', CLI_TEXT, TO(pool.gpus), "RANGE", CLI_POOL,
     "GPUs of the pool; a list or range compares them: 48,64 or 64..512*2"},
    {"nodes", 0, CLI_TEXT, TO(pool.nodes), "FILE", CLI_POOL,
     "CSV of node types: nodes, gpus_per_node, gpu_model, cpus, memory_mib, ..."},
    {"policy", 0, CLI_TEXT, TO(pool.policy), "NAME[,NAME]", CLI_POOL,
     "policies to replay, or all; default: fifo"},
    {"placement", 0, CLI_TEXT, TO(pool.placement), "pack|spread", CLI_POOL,
     "where gangs go; default: pack"},
    {"queues", 0, CLI_TEXT, TO(pool.queues), "FILE", CLI_POOL,
     "CSV of queues: queue, weight, quota_gpus, borrow_gpus, cohort"},
    {"restart", 0, CLI_TEXT, TO(pool.restart), "TIME", CLI_POOL,
     "GPUs held before work goes on after a stop, in s; default: 0"},
    {"read-rate", 0, CLI_TEXT, TO(pool.read_rate), "RATE", CLI_POOL,
     "... and until the checkpoint of the job (column checkpoint_gib) is read (10 GB/s)"},
    {"storage-rate", 0, CLI_TEXT, TO(pool.storage_rate), "RATE", CLI_POOL,
     "... from a storage of this bandwidth, which serves restarts one after the other; default: no "
     "limit"},
    {"curves", 0, CLI_TEXT, TO(pool.curves), "FILE", CLI_POOL,
     "jobs as for split, whose speeds at other sizes the jobs have that name them (column curve); "
     "for elastic"},
    {"checkpoint", 0, CLI_TEXT, TO(pool.checkpoint), "TIME", CLI_POOL,
     "work between checkpoints; a failure loses what came after the last; default: none"},
    {"lossy", 0, CLI_SWITCH, TO(pool.lossy), NULL, CLI_POOL,
     "a preemption loses work as a failure does, instead of saving it first"},
    {"mtbf", 0, CLI_TEXT, TO(pool.mtbf), "TIME", CLI_POOL,
     "mean time between failures of a node; default: none"},
    {"repair", 0, CLI_TEXT, TO(pool.repair), "TIME", CLI_POOL, "time a failed node is away"},
    {"explain", 0, CLI_TEXT, TO(pool.explain), "JOB", CLI_POOL,
     "why this job waits, and what would help"},
    {"at", 0, CLI_TEXT, TO(pool.at), "TIME", CLI_POOL,
     "... at this time; default: when it first waits"},
    {"jobs", 0, CLI_TEXT, TO(split.jobs), "FILE", CLI_SPLIT, "the jobs (JSON)"},
    {"objective", 0, CLI_TEXT, TO(split.objective), "NAME", CLI_SPLIT,
     "throughput (default), max-min or finish"},
    {"gpus", 'g', CLI_U32, TO(split.gpus), "N", CLI_SPLIT,
     "GPUs to divide; default: all of the cluster"},
    {"unit", 0, CLI_U32, TO(split.unit), "N", CLI_SPLIT,
     "GPUs that are given out together; default: those of a node"},
    {"cores", 0, CLI_U32, TO(split.cores), "N", CLI_SPLIT,
     "CPU cores for input and preparation; default: all of these nodes"},
    {"cache", 0, CLI_TEXT, TO(split.cache), "SIZE", CLI_SPLIT,
     "cache for data sets (40 TiB); default: none"},
    {"storage-rate", 0, CLI_TEXT, TO(split.storage), "RATE", CLI_SPLIT,
     "bandwidth of the storage (200 GB/s); default: not limited"},
    {"cluster", 'c', CLI_TEXT, TO(cluster), "NAME|FILE",
     CLI_EXPORT | CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_WHATIF | CLI_SIZE |
         CLI_SHOW | CLI_POOL | CLI_COMM | CLI_CALIBRATE | CLI_SPLIT,
     "built-in cluster or a cluster JSON file"},
    {"records", 0, CLI_TEXT, TO(records), "FILE", CLI_CALIBRATE,
     "records to fit; more files may follow"},
    {"table", 0, CLI_TEXT, TO(comm.table), "FILE", CLI_COMM,
     "measured tables of this cluster, in any form calibrate import reads; they go first"},
    {"op", 0, CLI_TEXT, TO(comm.op), "OP", CLI_COMM,
     "all_reduce, all_gather, reduce_scatter, alltoall or sendrecv"},
    {"gpus", 0, CLI_U32, TO(comm.ranks), "N", CLI_COMM, "ranks of the group, one a GPU"},
    {"algorithm", 0, CLI_TEXT, TO(comm.algorithm), "NAME|all", CLI_COMM,
     "simulated by its algorithm on the idle fabric: auto, ring, tree, nvls, nvls_tree, two_level, "
     "pat, sharp, direct, pxn, node_limited"},
    {"sizes", 0, CLI_TEXT, TO(comm.sizes), "SIZE..SIZE", CLI_COMM,
     "doublings, or a list: 1MiB,64MiB; as nccl-tests counts them; default: 1MiB..8GiB"},
    {"compare", 0, CLI_TEXT, TO(comm.compare), "LOG", CLI_COMM, "measured times to judge"},
    {"plan", 'p', CLI_TEXT, TO(plan), "FILE", CLI_TAKES_PLAN,
     "plan JSON file; flags override what it says"},
    {"profile", 0, CLI_TEXT, TO(profile), "NAME|FILE",
     CLI_EXPORT | CLI_CALIBRATE | CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SPLIT | CLI_SWEEP |
         CLI_WHATIF | CLI_SIZE | CLI_SHOW | CLI_VALIDATE | CLI_COMM,
     "calibrated constants; default: preset of the GPU"},
    {"stack", 0, CLI_TEXT, TO(stack), "NAME",
     CLI_EXPORT | CLI_CALIBRATE | CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SPLIT | CLI_SWEEP |
         CLI_WHATIF | CLI_SIZE | CLI_SHOW,
     "training software whose defaults and overheads apply; default: generic"},
    {"site", 0, CLI_TEXT, TO(site), "NAME|FILE",
     CLI_EXPORT | CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SPLIT | CLI_SWEEP | CLI_WHATIF |
         CLI_SIZE | CLI_SHOW,
     "site, built in or of calibrate runs, whose measured runs correct compute, communication and "
     "host time"},
    {"set", 's', CLI_SET, 0, "PATH=VALUE",
     CLI_EXPORT | CLI_CALIBRATE | CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SPLIT | CLI_SWEEP |
         CLI_WHATIF | CLI_SIZE | CLI_SHOW | CLI_COMM,
     "sets one field, e.g. cluster.network.nic='200 Gb/s'; repeatable"},
    {"flops", 0, CLI_TEXT, TO(flops), "CONVENTION",
     CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_WHATIF | CLI_SIZE,
     "how flop are counted for MFU; default: megatron"},
    {"rung", 0, CLI_TEXT, TO(rung), "bound|simulate|full",
     CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_WHATIF,
     "how far to compute: closed-form bound, simulation, or (predict) every rank and link; "
     "default: simulate"},
    {"scenario", 0, CLI_TEXT, TO(scenario), "FILE", CLI_PREDICT,
     "rung full: placement, slow ranks, faults, other GPUs and jobs (docs/full-rung.md)"},
    {"seed", 0, CLI_U64, TO(seed), "N", CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_POOL,
     "seed of random streams"},
    {"db", 0, CLI_TEXT, TO(db), "FILE",
     CLI_EXPORT | CLI_PREDICT | CLI_SPLIT | CLI_POOL | CLI_SWEEP | CLI_WHATIF | CLI_SIZE |
         CLI_REPORT,
     "SQLite database of the study"},
    {"resume", 0, CLI_SWITCH, TO(resume), NULL, CLI_SWEEP | CLI_WHATIF,
     "go on with the study in --db that has the same inputs and arguments; begins it when there is "
     "none"},
    {"framework", 0, CLI_TEXT, TO(framework), "NAME",
     CLI_PREDICT | CLI_EXPLAIN | CLI_SWEEP | CLI_WHATIF | CLI_SIZE | CLI_EXPORT,
     "only what this software can run: megatron, torchtitan, deepspeed, nemo, any; chooses the "
     "--stack; a search with --stack alone is limited likewise"},
    {"args", 0, CLI_TEXT, TO(arguments), "FILE", CLI_PREDICT | CLI_EXPLAIN | CLI_EXPORT,
     "the plan from launch arguments of a framework, as export launch prints them"},
    {"from", 0, CLI_TEXT, TO(from), "DB#N", CLI_EXPORT, "the N-th best plan of a database"},
    {"shard", 0, CLI_TEXT, TO(shard), "I/N|auto[/N]", CLI_SWEEP | CLI_WHATIF,
     "only this part of the plans or points, I from 0 to N - 1, into --db; auto: as Slurm, MPI, "
     "Kubernetes "
     "or "
     "TRAINYARD_SHARD number this process"},
    {"out", 'o', CLI_TEXT, TO(out), "FOLDER", CLI_REPORT, "folder the report is written to"},
    {"out", 'o', CLI_TEXT, TO(out), "FOLDER", CLI_EXPLAIN,
     "folder for a plot of what every change would do"},
    {"out", 'o', CLI_TEXT, TO(out), "FOLDER", CLI_VALIDATE,
     "folder for a plot of predicted against measured time"},
    {"out", 'o', CLI_TEXT, TO(out), "FILE", CLI_CALIBRATE,
     "records (import, measure), the site (runs), the profile (fit) or plots (show) are written "
     "here"},
    {"device", 0, CLI_TEXT, TO(measure.device), "cpu|storage|cuda", CLI_CALIBRATE,
     "what measure measures; default: cpu"},
    {"budget", 0, CLI_TEXT, TO(goal.budget), "TIME", CLI_CALIBRATE,
     "... in this time, such as 5 min; default: 60 s"},
    {"resume", 0, CLI_SWITCH, TO(measure.resume), NULL, CLI_CALIBRATE,
     "... only the points that --out does not hold yet"},
    {"ranks", 0, CLI_U32, TO(measure.ranks), "N", CLI_CALIBRATE,
     "... with so many processes of one core; default: all cores"},
    {"blas", 0, CLI_TEXT, TO(measure.blas), "LIBRARY", CLI_CALIBRATE,
     "... with this shared library of CBLAS; default: OpenBLAS, MKL, BLIS, reference"},
    {"folder", 0, CLI_TEXT, TO(measure.folder), "FOLDER", CLI_CALIBRATE,
     "... the storage below this folder; default: the current one"},
    {"step-time", 0, CLI_TEXT, TO(step_time), "TIME", CLI_CALIBRATE,
     "measured time of one step of the plan given by flags"},
    {"tokens-per-s", 0, CLI_TEXT, TO(tokens_per_s), "RATE", CLI_CALIBRATE,
     "the same as tokens/s of all GPUs together"},
    {"out", 'o', CLI_TEXT, TO(out), "FILE", CLI_DETECT, "the cluster file is written here"},
    {"gpu", 0, CLI_TEXT, TO(gpu), "NAME[,NAME]", CLI_SIZE,
     "GPUs to compare; alone: in the built-in cluster of each"},
    {"gpu", 0, CLI_TEXT, TO(gpu), "NAME|FILE", CLI_DETECT,
     "the GPU, where no file names it or several are there"},
    {"out", 'o', CLI_TEXT, TO(out), "FILE", CLI_POOL, "CSV of the times of each job"},
    {"runs", 0, CLI_TEXT, TO(runs), "FILE", CLI_VALIDATE | CLI_SHOW, "CSV table of measured runs"},
    {"cv", 0, CLI_SWITCH, TO(cv), NULL, CLI_VALIDATE,
     "fit the constants again without the rows they predict: by groups, and source by source"},
    {"extrapolate", 0, CLI_SWITCH, TO(extrapolate), NULL, CLI_VALIDATE,
     "fit without the large runs of weak-scaling series (8 x the GPUs of the smallest) and predict "
     "them"},
    {"worst", 0, CLI_U32, TO(worst), "N", CLI_VALIDATE, "rows with the largest errors to list"},
    {"measured", 0, CLI_TEXT, TO(explain.measured), "FIGURE", CLI_EXPLAIN,
     "what was measured: \"850 tokens/s/GPU\", \"9.6 s\", \"38 %\" (MFU, with --flops)"},
    {"log", 0, CLI_TEXT, TO(explain.log), "FILE", CLI_EXPLAIN,
     "a training log: the measured step, and what the command line leaves open of the plan"},
    {"profile-trace", 0, CLI_TEXT, TO(explain.profile), "FILE", CLI_EXPLAIN,
     "nsys SQLite export or PyTorch profiler JSON: measured against predicted, line by line"},
    {"profile-steps", 0, CLI_U32, TO(explain.profile_steps), "N", CLI_EXPLAIN,
     "steps the profile covers; default: by its marks"},
    {"measured", 0, CLI_SWITCH, TO(measured), NULL, CLI_PREDICT,
     "the plan is known to run: its time is computed even where memory or tp would forbid it"},
    {"top", 'k', CLI_U32, TO(top), "K", CLI_SWEEP,
     "plans shown per GPU count; default: 10 for one count, 3 for several"},
    {"all", 'a', CLI_SWITCH, TO(all), NULL, CLI_SWEEP,
     "near-duplicates too, not only the best of each (tp, pp, cp, ep)"},
    {"exhaustive", 0, CLI_SWITCH, TO(exhaustive), NULL, CLI_SWEEP,
     "simulate every plan that fits, not only those that could be listed; --db implies it"},
    {"overall", 0, CLI_SWITCH, TO(overall), NULL, CLI_SWEEP,
     "one list over all GPU counts instead of one for each"},
    {"price", 0, CLI_TEXT, TO(goal.price), "FILE", CLI_PREDICT | CLI_SWEEP | CLI_WHATIF | CLI_SIZE,
     "price list (docs/formats.md, \"Price\"): money and energy beside the speed; size takes one "
     "for "
     "each machine: A,B"},
    {"objective", 0, CLI_TEXT, TO(goal.objective), "NAME", CLI_SWEEP | CLI_WHATIF,
     "what plans are ranked by: tokens_per_s_per_gpu (default), tokens_per_s, cost_per_token, "
     "energy_per_token, time_to_tokens, gpus"},
    {"pareto", 0, CLI_TEXT, TO(goal.pareto), "NAME,NAME[,NAME]", CLI_SWEEP,
     "plans that no other beats in all of these objectives, over all GPU counts"},
    {"map", 0, CLI_TEXT, TO(monitor.map), "METRIC=SIGNAL[,...]", CLI_MONITOR,
     "metrics of your own, such as my_step_seconds=step_time"},
    {"tolerance", 0, CLI_TEXT, TO(monitor.tolerance), "RATIO", CLI_MONITOR,
     "deviation that counts as a departure; default: 10%"},
    {"print", 0, CLI_TEXT, TO(monitor.print), "series|dashboard", CLI_MONITOR,
     "the prediction for Prometheus or Grafana instead of a comparison"},
    {"input", 0, CLI_FIELD, 0, "KIND", CLI_FEEDS,
     "text, image or video: simulates the input pipeline of each GPU (docs/storage.md)"},
    {"sample-bytes", 0, CLI_FIELD, 0, "SIZE", CLI_FEEDS, "... a sample as stored, such as 110KB"},
    {"decode-ms", 0, CLI_FIELD, 0, "MS", CLI_FEEDS, "... CPU time of a sample"},
    {"workers", 0, CLI_FIELD, 0, "N", CLI_FEEDS,
     "... CPU processes per GPU; default: the cores there are"},
    {"prefetch", 0, CLI_FIELD, 0, "N", CLI_FEEDS, "... batches of a GPU under way; default: 2"},
    {"storage", 0, CLI_FIELD, 0, "TIER", CLI_FEEDS,
     "... tier the data lie on: dram, nvme, pfs, object; default: pfs"},
    {"checkpoint", 0, CLI_FIELD, 0, "sync|async", CLI_FEEDS,
     "saves during the run: training waits for the tier, or for the copy to host memory"},
    {"checkpoint-every", 0, CLI_FIELD, 0, "TIME|N steps", CLI_FEEDS,
     "... between two; default: the best for --mtbf, else 1 h"},
    {"checkpoint-storage", 0, CLI_FIELD, 0, "TIER", CLI_FEEDS, "... tier; default: pfs"},
    {"tokens", 0, CLI_TEXT, TO(goal.tokens), "N", CLI_PREDICT | CLI_SWEEP | CLI_WHATIF | CLI_SIZE,
     "tokens of the run, such as 15T: predict prints its time; for time_to_tokens, --deadline, "
     "--budget"},
    {"deadline", 0, CLI_TEXT, TO(goal.deadline), "TIME", CLI_SWEEP | CLI_WHATIF | CLI_SIZE,
     "only plans that train the tokens in this time, such as 60d"},
    {"budget", 0, CLI_TEXT, TO(goal.budget), "MONEY", CLI_SWEEP | CLI_WHATIF | CLI_SIZE,
     "only plans that train them for this money, in the currency of --price"},
    {"headroom", 0, CLI_TEXT, TO(goal.headroom), "SIZE", CLI_SWEEP | CLI_WHATIF,
     "only plans that leave this much memory free, such as 4GiB"},
    {"min-mfu", 0, CLI_TEXT, TO(goal.min_mfu), "RATIO", CLI_SWEEP | CLI_WHATIF,
     "only plans with this MFU or more, such as 40%"},
    {"mtbf", 0, CLI_TEXT, TO(goal.mtbf), "TIME[/gpu|/job]", CLI_FAILS,
     "mean time between failures of a node, such as 6000h, of a GPU or of the job: time and money "
     "count useful work"},
    {"mtbf-shape", 0, CLI_TEXT, TO(goal.shape), "K", CLI_FAILS,
     "... Weibull shape of the time between failures; default: 1, exponential"},
    {"preempt", 0, CLI_TEXT, TO(goal.preempt), "TIME", CLI_FAILS,
     "... mean time between preemptions of the job; default: none"},
    {"detect", 0, CLI_TEXT, TO(goal.detect), "TIME", CLI_FAILS,
     "... until a failure is noticed; default: in --restart"},
    {"spares", 0, CLI_TEXT, TO(goal.spares), "N", CLI_FAILS,
     "... nodes that take over at once; fewer than needed stop the job; default: enough"},
    {"save", 0, CLI_TEXT, TO(goal.save), "TIME", CLI_FAILS,
     "... how long a checkpoint stops training; default: 30 s"},
    {"restart", 0, CLI_TEXT, TO(goal.restart), "TIME", CLI_FAILS,
     "... from a failure to training again; default: 300 s"},
    {"repair", 0, CLI_TEXT, TO(goal.repair), "TIME", CLI_FAILS,
     "... until a failed node is back; default: 24 h"},
    {"slow-node", 0, CLI_TEXT, TO(goal.slow_node), "RATIO", CLI_FAILS,
     "time of a step on the slowest node over that on the others, such as 1.05: every step waits "
     "for it"},
    {"step-variation", 0, CLI_TEXT, TO(goal.variation), "RATIO", CLI_FAILS,
     "deviation of a node's time of one step over its mean, such as 1%: steps wait for the "
     "slowest"},
    {"phases", 0, CLI_TEXT, TO(goal.phases), "FILE", CLI_SIZE,
     "phases of the run: tokens, sequence length and batch of each, planned downtime"},
    {"confidence", 0, CLI_TEXT, TO(goal.confidence), "RATIO", CLI_SIZE,
     "probability with which deadline and budget are kept; default: 50 %"},
    {"keep-plan", 0, CLI_SWITCH, TO(keep_plan), NULL, CLI_WHATIF,
     "keep the best plan of the base instead of searching at every point"},
    {"tight", 0, CLI_SWITCH, TO(tight), NULL, CLI_SPLIT | CLI_SWEEP | CLI_WHATIF | CLI_SIZE,
     "also plans above the safe share of memory; they often run out of it at launch"},
    {"threads", 'j', CLI_U32, TO(jobs), "T", CLI_SPLIT, "worker threads; default: processors"},
    {"jobs", 'j', CLI_U32, TO(jobs), "T",
     CLI_SWEEP | CLI_WHATIF | CLI_SIZE | CLI_VALIDATE | CLI_CALIBRATE,
     "worker threads; default: processors"},
    {"json", 0, CLI_SWITCH, TO(json), NULL,
     CLI_MONITOR | CLI_PREDICT | CLI_EXPLAIN | CLI_SPLIT | CLI_SWEEP | CLI_WHATIF | CLI_SIZE |
         CLI_SHOW | CLI_LIST | CLI_VALIDATE | CLI_CALIBRATE | CLI_DETECT | CLI_POOL | CLI_COMM,
     "JSON instead of text"},
    {"man", 0, CLI_SWITCH, TO(man), NULL, CLI_HELP, "manual page in mdoc form"},
    {"quiet", 'q', CLI_SWITCH, TO(quiet), NULL, CLI_ANY, "no progress bar, no warnings"},
    {"help", 'h', CLI_SWITCH, TO(help), NULL, CLI_ANY, "help of the command"},
    {NULL, 0, CLI_SWITCH, 0, NULL, 0, NULL}};

const struct cli_command *cli_command_find(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}
