"""What to do about a process that ended, where several causes share it."""

from __future__ import annotations

from serried.finding import said

KERNEL_LOG = said(
    "look into the kernel log of its node: dmesg -T | grep -i -E 'killed process|oom'; it names "
    "the process and its size, or shows that somebody else sent the signal"
)
LESS_MEMORY = said(
    "load checkpoints by shards (low_cpu_mem_usage, mmap), use fewer loader workers and pinned "
    "buffers, or ask the scheduler for more memory"
)
OWN_VOLUME = said(
    "write checkpoints and caches to a mounted volume, not to the container's own disk, clear that "
    "disk, or raise what the pod may use (resources.limits)"
)
JOBS_OUTPUT = said(
    "give the job's output too: scontrol show job JOB (while Slurm remembers it) says after StdOut "
    "where it lies"
)
PODS_LOG = said(
    "give the logs of the pods too (kubectl logs POD --all-containers, --previous after a "
    "restart); kubectl describe pod POD says with which code each ended"
)
DETACH = said("start it detached from the terminal: tmux, nohup or sbatch")
ASK_SCHEDULER = said(
    "ask the scheduler why: time limit, preemption, maintenance, or somebody's scancel or kubectl "
    "delete"
)
REQUEUE = said("ask for more time, or save often and let the scheduler requeue the job")
CORE = said(
    "keep the core file and read it: gdb python core, then bt; or run with PYTHONFAULTHANDLER=1"
)
ITS_LOG = said(
    "read that rank's own log: torchrun writes one for each with --log-dir logs --redirects 3, "
    "Paddle with --log_dir; @record on main() brings its traceback into torchrun's summary"
)
THEIR_LOGS = said(
    "read the log of each of them: torchrun writes one for each rank with --log-dir logs "
    "--redirects 3, Paddle with --log_dir; the first traceback by its time is where to begin"
)
