/* SPDX-License-Identifier: BSD-3-Clause */
/* The built-in launchers; see launcher.h. */
#include "run/launcher.h"

#include <stddef.h>

/* Directories of a simulated node. */
#define NODE_FOLDER(what) "{simulated}/{host}/" what

/* A killed rank ends the step; otherwise the other ranks would wait for it. --immediate
 * limits the time that a step waits for its nodes. A run on fewer nodes than before may
 * have more ranks than processors. */
#define SRUN "{program} --job-name={name} --kill-on-bad-exit=1 [--immediate={patience}] "

/* Without exit-on-error, Flux needs half a minute to notice a killed rank. */
#define FLUX_RUN "{program} run --job-name={name} -o exit-on-error "

const launcher launcher_table[] = {
    {.name = "slurm",
     .manager = "slurm",
     .only = true,
     .programs = {"srun"},
     .run = SRUN "--nodes={nodes} [--ntasks={ranks}] --nodelist={hostlist} "
                 "[--overcommit{out?}]",
     /* options of the user follow and override these options */
     .raw = SRUN "[--nodes={nodes} --exclude={outlist}]",
     /* a killed srun leaves its step behind */
     .find = "squeue --noheader --steps '--format=%i %j' [--job {job}]",
     .end = {"scancel {id}"}},
    /* Before 0.73 "flux run" does not forward SIGTERM, and in every version SIGKILL
     * leaves the job behind. Therefore the job has a name and is canceled. A job with
     * tasks per node may have more ranks than cores. */
    {.name = "flux",
     .manager = "flux",
     .only = true,
     .programs = {"flux"},
     .run = FLUX_RUN "--nodes={nodes} [--tasks-per-node={each}|--ntasks={ranks}] "
                     "--requires=host:{hostlist}",
     .raw = FLUX_RUN "[--requires=-host:{outlist}]",
     .leaves = true,
     .find = "{program} jobs -no '{id}' --name={name}",
     .end = {"{program} cancel {id}", "{program} job wait-event -t 10 {id} clean",
             "{program} job kill -s KILL {id}",
             "{program} job wait-event -t 25 {id} clean"}},
    /* one resource set per node; other nodes are excluded */
    {.name = "jsrun",
     .manager = "lsf",
     .programs = {"jsrun"},
     .run = "{program} [--exclude_hosts={rest}] [--nrs={nodes} --rs_per_host=1 "
            "--tasks_per_rs={each} --cpu_per_rs=ALL_CPUS|--np={ranks}]",
     .raw = "{program} [--exclude_hosts={out}]"},
    /* passes unknown options on to jsrun */
    {.name = "lrun",
     .manager = "lsf",
     .programs = {"lrun"},
     .run = "{program} [--exclude_hosts={rest}] -N {nodes} [-T {each}|-n {ranks}]",
     .raw = "{program} [--exclude_hosts={out}]"},
    {.name = "aprun",
     .manager = "pbs",
     .programs = {"aprun"},
     .run = "{program} -n {ranks} -N {most} -L {hosts}",
     .raw = "{program} -L {hosts}"},
    {.name = "hydra",
     .programs = {"mpiexec.mpich"},
     .shared = {"mpiexec.hydra", "mpiexec", "mpirun"},
     .says = {"HYDRA build details"},
     .run = "{program} -hosts {slots} [-n {ranks}]",
     .raw = "{program} -hosts {hosts}",
     /* fork: on this machine, not on the nodes of a batch system */
     .simulate = "{program} -launcher fork [-genv LD_PRELOAD {preload}] (-n {host_ranks} "
                 "-env SCR_NODE_NAME {host} "
                 "-env SCR_CACHE_BASE " NODE_FOLDER(
                     "cache") " -env SCR_CNTL_BASE " NODE_FOLDER("cntl") " {command}|:)"},
    /* mpirun of Open MPI and PRRTE, which passes only named variables to other nodes */
    {.name = "openmpi",
     .programs = {"mpirun.openmpi", "mpiexec.openmpi", "prterun"},
     .shared = {"mpirun", "mpiexec"},
     .says = {"OpenRTE", "Open MPI", "PRRTE"},
     .run = "{program} --host {slots} [-n {ranks}] (-x {variable})",
     .raw = "{program} --host {stars} (-x {variable})",
     .simulate =
         "{program} --host localhost:{ranks} --map-by :OVERSUBSCRIBE "
         "--mca mpi_yield_when_idle 1 "
         "(-n {host_ranks} -x SCR_NODE_NAME={host} -x SCR_CACHE_BASE=" NODE_FOLDER(
             "cache") " -x SCR_CNTL_BASE=" NODE_FOLDER("cntl") " {command}|:)"},
    {.name = "intel",
     .shared = {"mpiexec.hydra", "mpiexec", "mpirun"},
     .says = {"Intel(R) MPI"},
     .run = "{program} -hosts {hosts} -ppn {most} -n {ranks}",
     .raw = "{program} -hosts {hosts}"},
    {.name = "pals",
     .shared = {"mpiexec"},
     .says = {"PALS"},
     .place = "/pals/",
     .run = "{program} -n {ranks} --ppn {most} --hosts {hosts}",
     .raw = "{program} --hosts {hosts}"},
    {.name = NULL}};
