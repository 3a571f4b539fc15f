/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIGS_H
#define CONFIGS_H

/* What tests of configurations share: one that is read from texts, and what was wrong
 * with it. Include records.h before. */

#include "config/config_file.h"
#include "config/descs.h"

struct conf {
    scr_config config;
    scr_descs descs;
    scr_problems problems;
};

/* Makes parameters of this process's environment unset. */
static inline void conf_clean_env(void)
{
    for (const scr_param *p = scr_param_table; p->name; p++)
        unsetenv(p->name);
    unsetenv("SCR_CONF_FILE");
}

/* A configuration of a system file, a user's file and what SCR_Config said (ended by
 * NULL); each may be NULL. */
static inline void conf_make(struct conf *c, const char *system, const char *user,
                             const char *const *set)
{
    kvtree_error err = {""};
    memset(c, 0, sizeof *c);
    conf_clean_env();
    assert_int_equal(scr_config_init(&c->config), 0);
    if (system)
        scr_config_text_read("sys", system, strlen(system), c->config.system,
                             &c->problems);
    if (user) scr_config_text_read("f", user, strlen(user), c->config.user, &c->problems);
    for (; set && *set; set++)
        if (scr_config_set(&c->config, *set, &err) != 0) fail_msg("%s", err.text);
    scr_config_check_places(&c->config, &c->problems);
    assert_int_equal(scr_descs_load(&c->config, &c->descs, &c->problems), 0);
}

/* Of a user's file without mistakes. */
static inline void conf_of(struct conf *c, const char *user)
{
    conf_make(c, NULL, user, NULL);
    if (c->problems.count > 0) fail_msg("%s", c->problems.text);
}

static inline void conf_done(struct conf *c)
{
    scr_descs_done(&c->descs);
    scr_config_done(&c->config);
    scr_problems_done(&c->problems);
}

/* The answer to a question about descriptors; NULL: there is none. */
static inline void conf_answers(const struct conf *c, const char *question,
                                const char *answer)
{
    char *text = scr_descs_answer(&c->descs, question);
    const char *is = text ? text : "none", *wanted = answer ? answer : "none";
    if (strcmp(is, wanted) != 0) fail_msg("%s: \"%s\", not \"%s\"", question, is, wanted);
    free(text);
}

#endif
