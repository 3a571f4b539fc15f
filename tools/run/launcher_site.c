/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers that a site describes in its configuration, LAUNCHER; see launcher.h. */
#include "run/launcher_site.h"

#include "common/errtext.h"
#include "config/desc.h"
#include "lib/tool.h"
#include "lib/tool_manager_table.h"
#include "lib/tool_run.h"
#include "lib/tool_template.h"
#include "lib/tool_user.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static scr_value site_value(const kvtree_elem *desc, const char *field,
                            char label[SCR_DESC_LABEL_SIZE])
{
    return scr_desc_value(desc, SCR_DESC_LAUNCHER, field, label);
}

/* ---- check ---- */

static void site_check_template(const kvtree_elem *desc, const char *field,
                                const launcher_values *known, scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    kvtree_error err = {""};
    const scr_value v = site_value(desc, field, label);
    if (v.text && tool_template_check(v.text, known->list, &err) != 0)
        scr_value_bad(&v, problems, "%s", err.text);
}

static void site_check_manager(const kvtree_elem *desc, scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    const scr_value v = site_value(desc, "MANAGER", label);
    scr_nearest nearest = {.name = v.text};
    if (!v.text) return;
    for (const manager *m = manager_table;; m++) {
        if (strcmp(v.text, m->name) == 0) return;
        scr_nearest_try(&nearest, m->name);
        if (!m->job[0]) break;
    }
    scr_value_bad(&v, problems, "no such batch system; did you mean %s?", nearest.best);
}

/* Checks the fields that depend on each other. */
static void site_check_fields(const kvtree_elem *desc, scr_problems *problems)
{
    char label[SCR_DESC_LABEL_SIZE];
    const scr_value run = site_value(desc, "RUN", label);
    if (!run.text) {
        const scr_value whole = {label, "", run.source};
        scr_value_bad(&whole, problems, "it is needed");
    }
    const scr_value end = site_value(desc, "END", label);
    if (end.text && strstr(end.text, "{id}") && !site_value(desc, "FIND", label).text) {
        site_value(desc, "END", label);
        scr_value_bad(&end, problems, "{id} needs the field FIND");
    }
}

int launcher_site_check(const scr_config *config, scr_problems *problems)
{
    static const char *const fields[] = {"RUN", "ARGUMENTS", "FIND", "END"};
    launcher_values known;
    kvtree *descs = scr_config_descs(config, SCR_DESC_LAUNCHER);
    int rc = descs ? launcher_values_make(NULL, NULL, &known) : -ENOMEM;
    const kvtree_elem *e = kvtree_elem_first(descs);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        site_check_fields(e, problems);
        site_check_manager(e, problems);
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            site_check_template(e, fields[i], &known, problems);
    }
    if (!rc) launcher_values_free(&known);
    kvtree_delete(&descs);
    return rc;
}

/* ---- rows ---- */

void launcher_site_row(const kvtree_elem *desc, launcher *row)
{
    char label[SCR_DESC_LABEL_SIZE];
    *row = (launcher){.name = kvtree_elem_key(desc),
                      .site = true,
                      .manager = site_value(desc, "MANAGER", label).text,
                      .run = site_value(desc, "RUN", label).text,
                      .raw = site_value(desc, "ARGUMENTS", label).text,
                      .find = site_value(desc, "FIND", label).text,
                      .end = {site_value(desc, "END", label).text}};
    if (!row->raw) row->raw = row->run;
}

/* ---- programs ---- */

int launcher_site_program(const char *name, char **program, kvtree_error *err)
{
    char path[PATH_MAX];
    if (!tool_run_find(name, path))
        return err_set(err, -ENOENT, "%s: there is no such program%s", name,
                       strchr(name, '/') ? "" : " in PATH");
    return tool_user_program(path, program, err);
}

/* Finds and checks the program of a field; "" if the field is missing. */
static int site_find_program(const kvtree_elem *desc, const char *field, char **program)
{
    char label[SCR_DESC_LABEL_SIZE];
    kvtree_error err = {""};
    const scr_value v = site_value(desc, field, label);
    char *name = v.text ? tool_template_program(v.text) : strdup("");
    if (!name) return tool_no_memory();
    *program = NULL;
    int rc = v.text ? launcher_site_program(name, program, &err) : 0;
    free(name);
    return rc ? tool_say(LAUNCHER_UNUSABLE, "%s (%s): %s", v.name, v.source, err.text)
              : COMMAND_GOOD;
}

int launcher_site_find_programs(const kvtree_elem *desc, char path[PATH_MAX])
{
    static const char *const fields[] = {"ARGUMENTS", "FIND", "END", "RUN"};
    int code = COMMAND_GOOD;
    for (size_t i = 0; i < sizeof fields / sizeof *fields && code == COMMAND_GOOD; i++) {
        char *program = NULL;
        code = site_find_program(desc, fields[i], &program);
        if (program) snprintf(path, PATH_MAX, "%s", program); /* RUN is the last field */
        free(program);
    }
    return code;
}
