/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers; see launcher.h. */
#include "run/launcher.h"

#include "common/errtext.h"
#include "config/desc.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_run.h"
#include "lib/tool_template.h"
#include "run/launcher_site.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER = 30 /* timeout of a program in seconds */, SAID = 1 << 16 /* bytes */ };

/* ---- recognition ---- */

/* Whether the program identifies itself as this launcher. */
static bool launcher_says(const launcher *row, const char *program)
{
    static const tool_limits limits = {.seconds = ANSWER, .bytes = SAID, .joined = true};
    const char *const command[] = {program, "--version", NULL};
    tool_answer answer;
    bool says = false;
    if (tool_run_answer(command, &limits, &answer, NULL) != 0) return false;
    for (int i = 0; row->says[i]; i++)
        says |= strstr(answer.output, row->says[i]) != NULL;
    free(answer.output);
    return says;
}

static bool launcher_lies_in(const char *place, const char *path)
{
    char *real = realpath(path, NULL);
    bool lies = real && strstr(real, place);
    free(real);
    return lies;
}

/* Returns the program of a row as the user would type it; NULL: there is none. */
static const char *launcher_program(const launcher *row)
{
    char path[PATH_MAX];
    for (int i = 0; i < LAUNCHER_PROGRAMS && row->programs[i]; i++)
        if (tool_run_is_there(row->programs[i])) return row->programs[i];
    for (int i = 0; i < LAUNCHER_PROGRAMS && row->shared[i]; i++)
        if (tool_run_find(row->shared[i], path) &&
            ((row->place && launcher_lies_in(row->place, path)) ||
             (row->says[0] && launcher_says(row, row->shared[i]))))
            return row->shared[i];
    return NULL;
}

/* ---- choice ---- */

static bool launcher_is_of_manager(const launcher *row)
{
    return !row->manager || strcmp(row->manager, tool_manager_name()) == 0;
}

/* Whether LAUNCHER_MPIRUN includes the row. */
static bool launcher_is_mpirun(const launcher *row)
{
    return !row->manager && !row->site;
}

/* Whether a row is a candidate for the choice. */
static bool launcher_is_candidate(const launcher *row, const char *name, bool simulated)
{
    if (simulated && !row->simulate) return false;
    if (!name) return simulated || launcher_is_of_manager(row);
    return strcmp(name, LAUNCHER_MPIRUN) == 0 ? launcher_is_mpirun(row)
                                              : strcmp(name, row->name) == 0;
}

static void launcher_list(const char *name, bool simulated, tool_words *words)
{
    for (const launcher *row = launcher_table; row->name; row++) {
        if (!launcher_is_candidate(row, name, simulated)) continue;
        for (int i = 0; i < LAUNCHER_PROGRAMS && row->programs[i]; i++)
            tool_words_add(words, "%s", row->programs[i]);
        for (int i = 0; i < LAUNCHER_PROGRAMS && row->shared[i]; i++)
            tool_words_add(words, "%s", row->shared[i]);
    }
}

static int launcher_report_missing(const char *name, bool simulated)
{
    tool_words words = {0}, text = {0};
    launcher_list(name, simulated, &words);
    if (name && !words.count) {
        for (const launcher *row = launcher_table; row->name; row++)
            tool_words_add(&words, "%s", row->name);
        tool_words_add_quoted(&text, tool_words_list(&words));
        tool_say(LAUNCHER_MISSING, "%s: there is no such launcher; those built in are %s",
                 name, text.count ? text.list[0] : "?");
    } else {
        tool_words_add_quoted(&text, tool_words_list(&words));
        tool_say(LAUNCHER_MISSING,
                 "%s%snone of these is in PATH, or none says that it is that launcher: "
                 "%s",
                 name ? name : "", name ? ": " : "", text.count ? text.list[0] : "?");
    }
    tool_words_done(&text);
    tool_words_done(&words);
    return COMMAND_BAD;
}

/* Chooses the first candidate of the configuration. -1: there is none; otherwise an exit
 * code, after a message. */
static int launcher_choose_site(const tool_prefix *prefix, const char *name,
                                bool simulated, launcher_choice *choice)
{
    scr_problems problems = {.count = 0};
    choice->descs = scr_config_descs(&prefix->config, SCR_DESC_LAUNCHER);
    int rc = choice->descs ? launcher_site_check(&prefix->config, &problems) : -ENOMEM;
    if (tool_tell_problems(&problems) != COMMAND_GOOD) return COMMAND_BAD;
    if (rc) return tool_no_memory();
    const kvtree_elem *e = kvtree_elem_first(choice->descs);
    for (; e; e = kvtree_elem_next(e)) {
        launcher_site_row(e, &choice->row);
        if (launcher_is_candidate(&choice->row, name, simulated))
            return launcher_site_find_programs(e, choice->program);
    }
    return -1;
}

/* Returns the launcher of the MPI with which SCR was built; NULL: it is missing or not a
 * candidate. *program: as the user would type it. */
static const launcher *launcher_of_mpi(const char *name, bool simulated,
                                       const char **program)
{
    const launcher *row = launcher_table;
    while (row->name && strcmp(row->name, TOOLS_MPI_LAUNCHER) != 0)
        row++;
    if (!row->name || !launcher_is_candidate(row, name, simulated)) return NULL;
    *program = launcher_program(row);
    return *program ? row : NULL;
}

/* Returns the first candidate that exists. The launcher of SCR's own MPI precedes those
 * of other MPIs. NULL: there is none. */
static const launcher *launcher_find(const char *name, bool simulated,
                                     const char **program)
{
    for (const launcher *row = launcher_table; row->name; row++) {
        if (!launcher_is_candidate(row, name, simulated)) continue;
        const launcher *own =
            row->manager ? NULL : launcher_of_mpi(name, simulated, program);
        if (own) return own;
        *program = launcher_program(row);
        if (*program) return row;
        if (row->only && !simulated) return NULL;
    }
    return NULL;
}

/* Returns the requested name: from the command line, else from SCR_LAUNCHER, else NULL.
 * If the command line asks for any launcher of MPI, SCR_LAUNCHER may choose among
 * them. */
static const char *launcher_name(const tool_prefix *prefix, const char *name)
{
    const char *set = scr_config_get(&prefix->config, "SCR_LAUNCHER", NULL);
    if (set && !*set) set = NULL;
    if (!name) return set;
    for (const launcher *row = launcher_table; set && row->name; row++)
        if (strcmp(name, LAUNCHER_MPIRUN) == 0 && strcmp(set, row->name) == 0 &&
            launcher_is_mpirun(row))
            return set;
    return *name ? name : NULL;
}

int launcher_choose(const tool_prefix *prefix, const char *name, bool simulated,
                    launcher_choice *choice)
{
    const char *program;
    *choice = (launcher_choice){.descs = NULL};
    name = launcher_name(prefix, name);
    int code = launcher_choose_site(prefix, name, simulated, choice);
    if (code >= 0) return code;
    const launcher *row = launcher_find(name, simulated, &program);
    if (!row) return launcher_report_missing(name, simulated);
    choice->row = *row;
    snprintf(choice->program, sizeof choice->program, "%s", program);
    return COMMAND_GOOD;
}

void launcher_choice_free(launcher_choice *choice)
{
    kvtree_delete(&choice->descs);
}

/* ---- a launch ---- */

int launcher_ranks(const launch *l)
{
    int ranks = 0;
    for (int i = 0; i < l->nodes->count && l->ranks; i++)
        ranks += l->ranks[i];
    return ranks;
}

static const char *launcher_template(const launcher *with, const launch *l)
{
    return l->simulated ? with->simulate : l->raw ? with->raw : with->run;
}

/* Adds the words of a template; id: of the job step to end, or NULL. */
static int launcher_expand(const launcher *with, const char *template, const launch *l,
                           const char *id, tool_words *words, kvtree_error *err)
{
    launcher_values values;
    char *program = NULL;
    if (launcher_values_make(l, id, &values) != 0)
        return err_set(err, -ENOMEM, "no memory");
    int rc = tool_template_expand(template, values.list, words, err);
    launcher_values_free(&values);
    if (rc || !with->site) return rc;
    rc = launcher_site_program(words->list[0], &program, err);
    if (rc) return rc;
    free(words->list[0]);
    words->list[0] = program;
    return 0;
}

int launcher_build(const launcher *with, const launch *l, tool_words *words,
                   kvtree_error *err)
{
    return launcher_expand(with, launcher_template(with, l), l, NULL, words, err);
}

/* ---- end of a launch ---- */

/* Runs a command and gets its output, to be freed. */
static int launcher_ask(const launcher *with, const char *template, const launch *l,
                        const char *id, char **output, kvtree_error *err)
{
    launch plain = *l;
    tool_words words = {0};
    plain.words = NULL; /* these are for a launch only */
    int rc = launcher_expand(with, template, &plain, id, &words, err);
    if (!rc) rc = tool_run(tool_words_list(&words), ANSWER, output, err);
    tool_words_done(&words);
    return rc;
}

/* Tries all commands, since the last one may succeed where another fails. */
static int launcher_end_one(const launcher *with, const launch *l, const char *id,
                            kvtree_error *err)
{
    int rc = 0;
    for (int i = 0; i < LAUNCHER_ENDS && with->end[i]; i++) {
        char *output = NULL;
        rc = launcher_ask(with, with->end[i], l, id, &output, err);
        free(output);
        if (rc == -ENOMEM) break;
    }
    return rc;
}

/* Returns the id in an output line of `find`; NULL: the line is of another launch. Other
 * launches may be newer. A launch in another job of the user may have the same name,
 * since names contain only a process id. */
static char *launcher_find_id(char *line, const char *name)
{
    line += strspn(line, " ");
    char *id = strsep(&line, " ");
    if (line) line += strspn(line, " ");
    return *id && (!line || !*line || strcmp(line, name) == 0) ? id : NULL;
}

/* Whether a command failed because the job step had already ended. */
static bool launcher_has_ended(const launcher *with, const launch *l, const char *id)
{
    char *output = NULL, *line;
    bool there = false;
    if (launcher_ask(with, with->find, l, NULL, &output, NULL) != 0) return false;
    for (char *rest = output; (line = strsep(&rest, "\n")) != NULL;) {
        const char *found = launcher_find_id(line, l->name);
        there |= found && strcmp(found, id) == 0;
    }
    free(output);
    return !there;
}

int launcher_end(const launcher *with, const launch *l, kvtree_error *err)
{
    char *output = NULL, *line;
    if (!with->end[0]) return 0;
    if (!with->find) return launcher_end_one(with, l, NULL, err);
    int rc = launcher_ask(with, with->find, l, NULL, &output, err);
    if (rc) return rc;
    for (char *rest = output; (line = strsep(&rest, "\n")) != NULL && !rc;) {
        const char *id = launcher_find_id(line, l->name);
        if (!id) continue;
        rc = launcher_end_one(with, l, id, err);
        if (rc && rc != -ENOMEM && launcher_has_ended(with, l, id)) rc = 0;
    }
    free(output);
    return rc;
}
