/* SPDX-License-Identifier: BSD-3-Clause */
/* The launchers that are built in; see launcher.h. */
#include "run/launcher.h"

#include <stddef.h>

/* What each simulated node has of its own. */
#define NODE_FOLDER(what) "{simulated}/{host}/" what

/* A killed rank ends the step: the others would wait for it. --immediate limits the time
 * that a step waits for its nodes. On fewer nodes than before there may be more ranks
 * than processors. */
#define SRUN "{program} --job-name={name} --kill-on-bad-exit=1 [--immediate={patience}] "

const launcher launcher_table[] = {
    {.name = "slurm",
     .manager = "slurm",
     .only = true,
     .programs = {"srun"},
     .run = SRUN "--nodes={nodes} [--ntasks={ranks}] --nodelist={hostlist} "
                 "[--overcommit{out?}]",
     /* options of the user follow and override these */
     .raw = SRUN "[--nodes={nodes} --exclude={outlist}]",
     /* a killed srun leaves its step behind */
     .find = "squeue --noheader --steps '--format=%i %j' [--job {job}]",
     .end = {"scancel {id}"}},
    {.name = "flux",
     .manager = "flux",
     .only = true,
     .programs = {"flux"},
     .run = "{program} run --nodes={nodes} [--ntasks={ranks}] --requires=host:{hostlist}",
     .raw = "{program} run [--requires=-host:{outlist}]"},
    {.name = "hydra",
     .programs = {"mpiexec.mpich"},
     .shared = {"mpiexec.hydra", "mpiexec", "mpirun"},
     .says = {"HYDRA build details"},
     .run = "{program} -hosts {slots} [-n {ranks}]",
     .raw = "{program} -hosts {hosts}",
     /* not on the nodes of a batch system */
     .simulate = "{program} -launcher fork (-n {host_ranks} -env SCR_NODE_NAME {host} "
                 "-env SCR_CACHE_BASE " NODE_FOLDER(
                     "cache") " -env SCR_CNTL_BASE " NODE_FOLDER("cntl") " {command}|:)"},
    {.name = NULL}};
