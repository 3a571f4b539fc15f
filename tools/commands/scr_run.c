/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_run: a job that survives failures (SCR Developer Guide 1.2, section 2.25.1). If it
 * is called scr_srun, scr_mpirun or by another name in run_wrappers, it takes the
 * arguments of that launcher. */
#include "run/run.h"

#include "common/number.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_run.h"
#include "run/program_check.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Other names of the command, one per launcher. As in SCR 3, the launcher may also be the
 * first argument of scr_run. */
static const struct run_wrapper {
    const char *command, *program, *launcher;
} run_wrappers[] = {
    {"scr_srun", "srun", "slurm"},   {"scr_mpirun", "mpirun", LAUNCHER_MPIRUN},
    {"scr_jsrun", "jsrun", "jsrun"}, {"scr_lrun", "lrun", "lrun"},
    {"scr_fluxrun", "flux", "flux"}, {"scr_aprun", "aprun", "aprun"}};
enum { RUN_WRAPPERS = sizeof run_wrappers / sizeof *run_wrappers };

/* Returns the launcher that the name of the command stands for; NULL: scr_run itself. */
static const char *run_launcher_name(void)
{
    for (int i = 0; i < RUN_WRAPPERS; i++)
        if (strcmp(command_self(), run_wrappers[i].command) == 0)
            return run_wrappers[i].launcher;
    return NULL;
}

/* Returns the launcher that scr_run has in place of a program; NULL: none. */
static const char *run_launcher_named(const char *const words[])
{
    for (int i = 0; i < RUN_WRAPPERS; i++)
        if (strcmp(words[0], run_wrappers[i].program) == 0 && words[1] &&
            program_is_launcher(words))
            return run_wrappers[i].launcher;
    return NULL;
}

/* Skips "run" after flux, as it is part of the launcher; scripts may also have "flux mini
 * run" or "flux mini submit". */
static char **run_skip_verbs(const char *name, char **words)
{
    if (strcmp(name, "flux") != 0) return words;
    if (words[0] && strcmp(words[0], "mini") == 0) words++;
    if (words[0] && (strcmp(words[0], "run") == 0 || strcmp(words[0], "submit") == 0))
        words++;
    return words;
}

static bool run_is_old_option(const char *word)
{
    static const char *const old[] = {"-rc", "--run-cmd", "-rs", "--restart-cmd"};
    for (int i = 0; i < 4; i++) {
        size_t length = strlen(old[i]);
        if (strncmp(word, old[i], length) == 0 && (!word[length] || word[length] == '='))
            return true;
    }
    return false;
}

/* Returns an option of SCR 3 before the program, which is the first word that can be
 * started; or NULL. */
static const char *run_old_option(char **words)
{
    for (; *words && !tool_run_is_there(*words); words++)
        if (run_is_old_option(*words)) return *words;
    return NULL;
}

/* Runs the job with arguments of a launcher; words[-1] is the name of the command or
 * launcher. */
static int run_as_launcher(const char *name, char **words)
{
    static const char usage[] = "ARGUMENT... PROGRAM [ARGUMENT]...";
    if (words[0] && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        command_usage(stdout, usage);
        return command_flush();
    }
    if (words[0] && strcmp(words[0], "--version") == 0) return command_version();
    const char *old = run_old_option(words);
    if (old)
        return command_misused(usage,
                               "%s: there is one command for the first start and for a "
                               "restart; SCR_Have_restart tells the program which it is",
                               old);
    words = run_skip_verbs(name, words);
    if (!words[0])
        return command_misused(usage,
                               "no PROGRAM given: it follows the arguments of the "
                               "launcher, as in: %s -n 4 ./program",
                               command_self());
    const run_request request = {
        .launcher = name, .raw = 1, .words = (const char *const *)words};
    command_outlive_reader();
    return run_job(&request);
}

/* -1 to continue; otherwise an exit code. */
static int run_check_numbers(const tool *t, run_request *r)
{
    static const char *const names[] = {"ranks", "nodes", "per-node"};
    int *const numbers[] = {&r->ranks, &r->nodes, &r->per_node};
    if (r->ranks > 0 && r->per_node > 0)
        return tool_misused(t, "either --ranks or --per-node");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (*numbers[i] == 0)
            return tool_misused(t, "--%s 0: nothing would run; it is at least 1",
                                names[i]);
        if (*numbers[i] < 0) *numbers[i] = 0; /* not given */
    }
    return -1;
}

static int run_check_runs(const tool *t, const char *text, int *runs)
{
    int64_t number;
    if (!text) return -1;
    if (number_int64(text, &number) != 0 || number < -1 || number == 0 ||
        number > 1000000)
        return tool_misused(t,
                            "--runs %s: not a number of runs; it is 1 to 1000000, or -1: "
                            "any number",
                            text);
    *runs = (int)number;
    return -1;
}

static int run_check_simulation(const tool *t, const run_request *r)
{
    kvtree_error err = {""};
    simulate_failure failures[SIMULATE_FAILURES];
    int nodes, per_node, count;
    if (r->fail && !r->simulate) return tool_misused(t, "--fail is for simulated nodes");
    if (r->simulate && r->launcher)
        return tool_misused(t, "--simulate needs no launcher");
    if (!r->simulate) return -1;
    if (simulate_parse(r->simulate, &nodes, &per_node) != 0)
        return tool_misused(t, "--simulate %s: not NODESxRANKS, as 4x2", r->simulate);
    if (r->fail && simulate_parse_failures(r->fail, nodes, failures, &count, &err) != 0)
        return tool_misused(t, "--fail %s (--simulate %s)", err.text, r->simulate);
    return -1;
}

int main(int argc, char **argv)
{
    run_request r = {.ranks = -1, .nodes = -1, .per_node = -1};
    const char *runs = NULL;
    char *fail = NULL;
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'n', "ranks", "N", "ranks of the program (default: one per node)",
         .number = &r.ranks},
        {'N', "nodes", "N", "nodes to run on; the others are spare (default: all)",
         .number = &r.nodes},
        {'r', "per-node", "N", "ranks on each node, in place of --ranks",
         .number = &r.per_node},
        {'R', "runs", "N",
         "how often the program may be started, -1: any number\n"
         "(default: SCR_RUNS)",
         .text = &runs},
        {'l', "launcher", "NAME",
         "of the launcher (default: SCR_LAUNCHER, or what is\nthere)",
         .text = &r.launcher},
        {'s', "simulate", "NODESxRANKS", "on simulated nodes on this machine, as 4x2",
         .text = &r.simulate},
        {'f', "fail", "WHAT",
         "a failure of a simulated node:\n"
         "node=3,after=2checkpoints[,run=1][,how=hang]\n"
         "[,while=checkpoint]; once for each failure, or\n"
         "several with blanks",
         .joined = &fail},
        {'Q', "requeue", NULL,
         "put the job back into the queue when it has to end\n"
         "before the program is done (Slurm)",
         .flag = &r.requeue},
        {'q', "quiet", NULL, "log to .scr/runs.log only", .flag = &r.quiet},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... PROGRAM [ARGUMENT]...",
        .about =
            "Runs an MPI program that uses SCR, and starts it again after failures "
            "on the nodes\nthat are left. PROGRAM is no launcher: scr_run starts that. "
            "scr_srun, scr_mpirun,\nscr_jsrun, scr_lrun, scr_fluxrun and scr_aprun take "
            "the arguments of a launcher, and\nso does scr_run without options before "
            "srun, mpirun, jsrun, lrun, flux or aprun.\n",
        .codes = "that of the program's last run, 128 and a signal that ended it; 1 when "
                 "it was\nnot started, or what it left in the caches could not be saved; "
                 "2 wrong usage.\n",
        .options = options,
        .most = -1,
        .program = 1};
    tool_args args;
    command_open_streams();
    if (run_launcher_name()) return run_as_launcher(run_launcher_name(), argv + 1);
    int code = tool_start(&t, argc, argv, &args);
    const char *wrapped = code < 0 && args.count && args.list == argv + 1
                              ? run_launcher_named((const char *const *)args.list)
                              : NULL;
    if (wrapped) return run_as_launcher(wrapped, args.list + 1);
    r.fail = fail;
    if (code < 0 && args.count == 0)
        code =
            tool_misused(&t, "no PROGRAM given: it follows the options, as in: scr_run "
                             "--simulate 4x2 ./program");
    if (code < 0) code = run_check_runs(&t, runs, &r.runs);
    if (code < 0) code = run_check_numbers(&t, &r);
    if (code < 0) code = run_check_simulation(&t, &r);
    if (code < 0 && r.requeue && (r.simulate || !tool_manager_can_requeue()))
        code = tool_misused(&t, "--requeue is for jobs of Slurm");
    if (code < 0) code = program_check(&t, argv, &args, r.simulate != NULL);
    if (code < 0) {
        r.words = (const char *const *)args.list;
        command_outlive_reader();
        code = run_job(&r);
    }
    free(fail);
    return code;
}
