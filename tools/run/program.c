/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers in place of a program; see program.h. */
#include "run/program.h"

#include "lib/tool_run.h"
#include <string.h>
#include <sys/stat.h>

static int is_in(const char *word, const char *const list[])
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0) return 1;
    return 0;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- launchers ---- */

static const char *const by_hydra[] = {
    "mpirun",         "mpiexec",         "mpirun.mpich",
    "mpiexec.mpich",  "mpirun.hydra",    "mpiexec.hydra",
    "mpirun.gforker", "mpiexec.gforker", NULL};
static const char *const by_slurm[] = {"srun", NULL};
static const char *const others[] = {
    "mpirun.openmpi", "mpiexec.openmpi", "mpirun.lam",  "mpiexec.lam",
    "mpirun.prrte",   "mpiexec.prrte",   "mpirun_rsh",  "mpirun.slurm",
    "mpiexec.slurm",  "orterun",         "orte-submit", "prun",
    "prterun",        "aprun",           "jsrun",       "lrun",
    "ibrun",          "palsrun",         "yhrun",       "ccc_mprun",
    "scr_run",        "scr_srun",        "scr_mpirun",  NULL};

/* An application may be called flux, too. 0: it is no launcher; otherwise the number of
 * words. */
static int count_flux(const char *const words[])
{
    static const char *const starts[] = {"run",   "submit", "bulksubmit", "alloc",
                                         "batch", "exec",   "start",      NULL};
    if (strcmp(base_of(words[0]), "flux") != 0 || !words[1]) return 0;
    if (is_in(words[1], starts)) return 2;
    return strcmp(words[1], "mini") == 0 && words[2] && is_in(words[2], starts) ? 3 : 0;
}

/* The words that name the launcher; 0: none. */
static int count_launcher(const char *const words[])
{
    const char *base = base_of(words[0]);
    if (is_in(base, by_hydra) || is_in(base, by_slurm) || is_in(base, others)) return 1;
    return count_flux(words);
}

int program_is_launcher(const char *const words[])
{
    return count_launcher(words) > 0;
}

/* ---- what is meant ---- */

static int is_number(const char *text)
{
    return text && *text && strspn(text, "0123456789") == strlen(text);
}

/* The number of ranks in an option such as -n4 or --ntasks=4; NULL. */
static const char *ranks_within(const char *option)
{
    static const char *const starts[] = {
        "-n", "-np", "-n=", "-np=", "--np=", "--ntasks=", NULL};
    for (const char *const *s = starts; *s; s++)
        if (strncmp(option, *s, strlen(*s)) == 0 && is_number(option + strlen(*s)))
            return option + strlen(*s);
    return NULL;
}

/* Words that an option of a launcher takes; 0: nobody knows. */
static int count_option(const char *const words[])
{
    static const char *const flags[] = {"-l",
                                        "-v",
                                        "--label",
                                        "--verbose",
                                        "--exclusive",
                                        "--overcommit",
                                        "--oversubscribe",
                                        "--overlap",
                                        "--allow-run-as-root",
                                        "-prepend-rank",
                                        NULL};
    static const char *const with_value[] = {"-host",
                                             "--host",
                                             "-hosts",
                                             "-H",
                                             "-f",
                                             "-hostfile",
                                             "--hostfile",
                                             "-machinefile",
                                             "--machinefile",
                                             "-p",
                                             "--partition",
                                             "-t",
                                             "--time",
                                             "-w",
                                             "--nodelist",
                                             "--mpi",
                                             "-bind-to",
                                             "--bind-to",
                                             "--map-by",
                                             "-wdir",
                                             "-launcher",
                                             "-x",
                                             NULL};
    static const char *const with_two[] = {"-env", "-genv", "--env", NULL};
    if (is_in(words[0], with_two)) return words[1] && words[2] ? 3 : 0;
    if (strchr(words[0], '=') || is_in(words[0], flags) || ranks_within(words[0]))
        return 1;
    return is_number(words[1]) || (words[1] && is_in(words[0], with_value)) ? 2 : 0;
}

/* The program behind a launcher and its options, and the ranks that these ask for; NULL:
 * nobody knows. */
static const char *const *find_program(const char *const words[], const char **ranks)
{
    static const char *const options[] = {"-n", "-np", "--np", "-c", "--ntasks", NULL};
    *ranks = NULL;
    for (const char *const *w = words; *w; w++)
        if (strcmp(*w, ":") == 0) return NULL; /* several programs */
    words += count_launcher(words);
    while (*words && **words == '-') {
        int size = strcmp(*words, "--") == 0 ? 1 : count_option(words);
        if (size == 0) return NULL;
        if (ranks_within(*words)) *ranks = ranks_within(*words);
        if (size == 2 && is_number(words[1]) && is_in(*words, options)) *ranks = words[1];
        words += size;
    }
    return *words ? words : NULL;
}

/* The command that takes the same arguments as that launcher. */
static const char *face_of(const char *launcher)
{
    if (is_in(base_of(launcher), by_hydra)) return "scr_mpirun";
    return is_in(base_of(launcher), by_slurm) ? "scr_srun" : NULL;
}

void program_advise(const char *const own[], int ranked, const char *const words[],
                    tool_words *line)
{
    static const char *const open[] = {"PROGRAM", "...", NULL};
    const char *ranks, *face = face_of(words[0]);
    const char *const *program = find_program(words, &ranks);
    if (!own[1] && face && words[1] && strcmp(own[0], "scr_run") == 0) {
        tool_words_add(line, "%s", face);
        tool_words_add_all(line, words + 1);
        return;
    }
    tool_words_add_all(line, own);
    if (!ranked && ranks) tool_words_add(line, "--ranks=%s", ranks);
    tool_words_add_all(line, program ? program : open);
}

/* ---- what was typed ---- */

static int complain(const tool *t, const char *const words[], const tool_words *line)
{
    tool_words text = {0};
    const char *const *list = tool_words_list(line);
    if (line->failed) return tool_complain("no memory");
    tool_words_add_quoted(&text, list);
    int code = tool_misused(
        t,
        "PROGRAM is the launcher %s, but %s starts a launcher itself: each rank would be "
        "a job of its own, and all of them in one prefix folder. Instead: %s",
        base_of(words[0]), command_self(), text.failed ? "no memory" : text.list[0]);
    tool_words_done(&text);
    return code;
}

/* -1 to go on. */
static int check_there(const char *program, int here)
{
    struct stat st;
    if (tool_run_is_there(program)) return -1;
    const char *why = !strchr(program, '/')
                          ? "there is no such program in PATH; one in this folder is "
                            "./PROGRAM"
                      : stat(program, &st) != 0 ? "there is no such program"
                      : S_ISDIR(st.st_mode)     ? "that is a folder, and no program"
                                                : "it is not executable (chmod +x)";
    tool_complain("%s%s: %s%s", here ? "" : "warning: ", *program ? program : "''", why,
                  here ? "" : ", on this machine");
    return here ? COMMAND_BAD : -1;
}

int program_check(const tool *t, char **argv, const tool_args *args, int ranked, int here)
{
    tool_words own = {0}, line = {0};
    const char *const *words = (const char *const *)args->list;
    if (!program_is_launcher(words)) return check_there(words[0], here);
    tool_words_add(&own, "%s", command_self());
    for (char **word = argv + 1; word < args->list; word++)
        if (word + 1 < args->list || strcmp(*word, "--") != 0)
            tool_words_add(&own, "%s", *word);
    if (own.failed)
        line.failed = 1;
    else
        program_advise(tool_words_list(&own), ranked, words, &line);
    int code = complain(t, words, &line);
    tool_words_done(&own);
    tool_words_done(&line);
    return code;
}
