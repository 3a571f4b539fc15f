/* SPDX-License-Identifier: BSD-3-Clause */
/* Who runs this, and in which allocation. */
#include "config/identity.h"
#include "records.h"
#include <errno.h>
#include <pwd.h>

static const char *const variables[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID",
                                        "LSB_JOBID", "FLUX_ENCLOSING_ID"};
static const char *const others[] = {"FLUX_JOB_ID_PATH", "FLUX_JOB_ID"};
#define COUNT (sizeof variables / sizeof *variables)

static int clean(void **state)
{
    for (size_t i = 0; i < COUNT; i++)
        unsetenv(variables[i]);
    unsetenv(others[0]);
    unsetenv(others[1]);
    return 0;
}

static void job_of_the_batch_system(void **state)
{
    char job[SCR_JOB_ID_SIZE];
    kvtree_error err = {""};
    for (size_t i = COUNT; i-- > 0;) { /* the first that is there counts */
        setenv(variables[i], variables[i], 1);
        assert_int_equal(scr_identity_job("/p", job, &err), 0);
        assert_string_equal(job, variables[i]);
    }
    setenv(variables[0], "", 1);
    assert_int_equal(scr_identity_job("/p", job, &err), 0);
    assert_string_equal(job, variables[1]);
}

/* What Flux tells a program, and the id of the allocation: that of the instance, never
 * that of the launch where another one is known. */
static void job_of_flux(void **state)
{
    static const struct {
        const char *instance, *path, *launch, *job;
        int rc;
    } rows[] = {{"fA", "/fB/fC", "fC", "fA", 0},
                {"\306\222A", NULL, "\306\222C", "fA", 0},
                {NULL, "/fA/fB", "fB", "fA", 0},
                {NULL, "/f1/\306\222A/\306\222B", "\306\222B", "fA", 0},
                {NULL, "/fB", "fB", "prefix-d586a7a0", 0},
                {NULL, NULL, "\306\222C", "fC", SCR_IDENTITY_OF_LAUNCH},
                {NULL, NULL, NULL, "prefix-d586a7a0", 0},
                {NULL, "fA/", NULL, "fA", 0},
                {NULL, "fA", NULL, "prefix-d586a7a0", 0},
                {"f/A", NULL, NULL, NULL, -EINVAL},
                {"\306\222", NULL, NULL, NULL, -EINVAL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char job[SCR_JOB_ID_SIZE] = "old";
        kvtree_error err = {""};
        clean(state);
        if (rows[i].instance) setenv("FLUX_ENCLOSING_ID", rows[i].instance, 1);
        if (rows[i].path) setenv(others[0], rows[i].path, 1);
        if (rows[i].launch) setenv(others[1], rows[i].launch, 1);
        assert_int_equal(scr_identity_job("/p/run1", job, &err), rows[i].rc);
        assert_string_equal(job, rows[i].job ? rows[i].job : "old");
        if (rows[i].rc < 0) assert_says(err.text, "is not a job id of Flux");
    }
}

static void job_of_the_prefix(void **state)
{
    char job[SCR_JOB_ID_SIZE], other[SCR_JOB_ID_SIZE];
    kvtree_error err = {""};
    assert_int_equal(scr_identity_job("/p/run1", job, &err), 0);
    assert_string_equal(job, "prefix-d586a7a0");
    assert_int_equal(scr_identity_job("/p/run2", other, &err), 0);
    assert_string_not_equal(job, other);
}

static void job_too_long(void **state)
{
    char job[SCR_JOB_ID_SIZE] = "old", text[SCR_JOB_ID_SIZE + 1] = "";
    kvtree_error err = {""};
    memset(text, '7', SCR_JOB_ID_SIZE);
    setenv("PBS_JOBID", text, 1);
    assert_int_equal(scr_identity_job("/p", job, &err), -EINVAL);
    assert_says(err.text, "PBS_JOBID=777");
    assert_string_equal(job, "old");
    setenv("PBS_JOBID", text + 1, 1);
    assert_int_equal(scr_identity_job("/p", job, &err), 0);
}

static void user_and_node(void **state)
{
    char user[SCR_USER_SIZE], node[SCR_NODE_SIZE], host[SCR_NODE_SIZE] = "";
    const struct passwd *pw = getpwuid(geteuid());
    scr_identity_user(user);
    if (pw) assert_string_equal(user, pw->pw_name);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    scr_identity_node(node);
    assert_string_equal(node, host);
}

#define job_test(function) cmocka_unit_test_setup_teardown(function, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(job_of_the_batch_system), job_test(job_of_flux),
        job_test(job_of_the_prefix),       job_test(job_too_long),
        cmocka_unit_test(user_and_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
