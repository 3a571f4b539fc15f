/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects launchers in place of a program; see program_check.h. */
#include "run/program_check.h"

#include "lib/tool_run.h"
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

/* Base names of launchers. */
static const char *const by_hydra[] = {
    "mpirun",         "mpiexec",         "mpirun.mpich",
    "mpiexec.mpich",  "mpirun.hydra",    "mpiexec.hydra",
    "mpirun.gforker", "mpiexec.gforker", NULL};
static const char *const others[] = {
    "mpirun.*", "mpiexec.*",   "mpirun_rsh", "orterun",  "orte-submit", "prun",
    "prterun",  "aprun",       "jsrun",      "lrun",     "ibrun",       "palsrun",
    "yhrun",    "ccc_mprun",   "scr_run",    "scr_srun", "scr_mpirun",  "scr_jsrun",
    "scr_lrun", "scr_fluxrun", "scr_aprun",  "srun",     NULL};

static bool program_is_in(const char *word, const char *const patterns[])
{
    for (; *patterns; patterns++)
        if (fnmatch(*patterns, word, 0) == 0) return true;
    return false;
}

static const char *program_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* An application may also be called flux. */
static bool program_is_flux(const char *const words[])
{
    static const char *const verbs[] = {"run",   "submit", "bulksubmit", "alloc",
                                        "batch", "exec",   "start",      NULL};
    if (strcmp(program_base(words[0]), "flux") != 0 || !words[1]) return false;
    if (strcmp(words[1], "mini") == 0) words++;
    return words[1] && program_is_in(words[1], verbs);
}

bool program_is_launcher(const char *const words[])
{
    const char *base = program_base(words[0]);
    return program_is_in(base, by_hydra) || program_is_in(base, others) ||
           program_is_flux(words);
}

void program_advise(const char *const own[], const char *const words[], tool_words *line)
{
    static const char *const program[] = {"PROGRAM", "...", NULL};
    const char *base = program_base(words[0]);
    const char *wrapper = program_is_in(base, by_hydra) ? "scr_mpirun"
                          : strcmp(base, "srun") == 0   ? "scr_srun"
                                                        : NULL;
    if (!own[1] && wrapper && words[1] && strcmp(own[0], "scr_run") == 0) {
        tool_words_add(line, "%s", wrapper);
        tool_words_add_all(line, words + 1);
    } else {
        tool_words_add_all(line, own);
        tool_words_add_all(line, program);
    }
}

/* Returns -1 to continue. */
static int program_check_there(const char *program, bool here)
{
    struct stat st;
    if (tool_run_is_there(program)) return -1;
    const char *why = !strchr(program, '/')
                          ? "there is no such program in PATH; one in this directory is "
                            "./PROGRAM"
                      : stat(program, &st) != 0 ? "there is no such program"
                      : S_ISDIR(st.st_mode)     ? "that is a directory, not a program"
                                                : "it is not executable (chmod +x)";
    if (!*program) program = "''";
    if (here) return tool_say(PROGRAM_MISSING, "%s: %s", program, why);
    tool_say(PROGRAM_NOT_HERE, "%s: %s, on this machine", program, why);
    return -1;
}

int program_check(const tool *t, char **argv, const tool_args *args, bool here)
{
    tool_words own = {0}, line = {0}, text = {0};
    const char *const *words = (const char *const *)args->list;
    if (!program_is_launcher(words)) return program_check_there(words[0], here);
    tool_words_add(&own, "%s", command_self());
    for (char **word = argv + 1; word < args->list; word++)
        if (word + 1 < args->list || strcmp(*word, "--") != 0)
            tool_words_add(&own, "%s", *word);
    if (!own.failed) program_advise(tool_words_list(&own), words, &line);
    if (!own.failed && !line.failed) tool_words_add_quoted(&text, tool_words_list(&line));
    int code = tool_misused(
        t, "PROGRAM is the launcher %s, but %s starts a launcher itself. Instead: %s",
        program_base(words[0]), command_self(), text.count ? text.list[0] : "no memory");
    tool_words_done(&own);
    tool_words_done(&line);
    tool_words_done(&text);
    return code;
}
