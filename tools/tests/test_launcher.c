/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact command lines of launches, and the syntax of --simulate and --fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "run/launcher.h"
#include "run/simulate.h"
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hostlist listed(const char *text)
{
    hostlist list = {0, NULL};
    kvtree_error err = {""};
    assert_int_equal(hostlist_parse(text, &list, &err), 0);
    return list;
}

static const launcher *row(const char *name)
{
    const launcher *found = launcher_table;
    while (found->name && strcmp(found->name, name) != 0)
        found++;
    if (!found->name) fail_msg("no launcher %s", name);
    return found;
}

/* nodes, ranks (NULL: determined by the words), nodes that are down, and the expected
 * line for "prog -x 1", or for "-n 8 prog" as raw words. */
static void expect(const char *name, const char *program, const char *nodes,
                   const int *ranks, const char *down, const char *wanted)
{
    const launcher *with = row(name);
    kvtree_error err = {""};
    static const char *const plain[] = {"prog", "-x", "1", NULL};
    static const char *const raw[] = {"-n", "8", "prog", NULL};
    char text[1024] = "";
    hostlist up = listed(nodes), bad = listed(down);
    const launch l = {.nodes = &up,
                      .ranks = ranks,
                      .out = &bad,
                      .rest = &bad,
                      .program = program,
                      .name = "scr_run.7.1",
                      .simulated = strcmp(nodes, "node1,node2,node4") ? NULL : "/s",
                      .raw = ranks == NULL,
                      .words = ranks ? plain : raw,
                      .patience = 60};
    tool_words words = {0};
    if (launcher_build(with, &l, &words, &err) != 0) fail_msg("%s", err.text);
    for (int i = 0; i < words.count; i++) {
        assert_null(strchr(words.list[i], ' '));
        if (i) strcat(text, " ");
        strcat(text, words.list[i]);
    }
    assert_string_equal(text, wanted);
    tool_words_done(&words);
    hostlist_done(&up);
    hostlist_done(&bad);
}

static const int even[] = {2, 2, 2}, uneven[] = {3, 3, 2}, gap[] = {1, 0, 1};

static void test_slurm(void **state)
{
    expect("slurm", "srun", "n[1-3]", even, "",
           "srun --job-name=scr_run.7.1 --kill-on-bad-exit=1 --immediate=60 --nodes=3 "
           "--ntasks=6 "
           "--nodelist=n[1-3] prog -x 1");
    expect("slurm", "srun", "n[1,3-4]", uneven, "n2",
           "srun --job-name=scr_run.7.1 --kill-on-bad-exit=1 --immediate=60 --nodes=3 "
           "--ntasks=8 "
           "--nodelist=n[1,3-4] --overcommit prog -x 1");
    expect("slurm", "srun", "n[1-3]", NULL, "",
           "srun --job-name=scr_run.7.1 --kill-on-bad-exit=1 --immediate=60 -n 8 prog");
    expect("slurm", "srun", "n[1,3]", NULL, "n[2,4]",
           "srun --job-name=scr_run.7.1 --kill-on-bad-exit=1 --immediate=60 --nodes=2 "
           "--exclude=n[2,4] "
           "-n 8 prog");
}

static void test_hydra(void **state)
{
    expect("hydra", "mpiexec", "n[1,3,4]", uneven, "n2",
           "mpiexec -hosts n1:3,n3:3,n4:2 -n 8 prog -x 1");
    expect("hydra", "mpiexec", "n[1,3]", NULL, "n2", "mpiexec -hosts n1,n3 -n 8 prog");
}

static void test_flux(void **state)
{
#define RUN "flux run --job-name=scr_run.7.1 -o exit-on-error "
    expect("flux", "flux", "n[1-3]", even, "",
           RUN "--nodes=3 --tasks-per-node=2 --requires=host:n[1-3] prog -x 1");
    expect("flux", "flux", "n[1,3-4]", uneven, "n2",
           RUN "--nodes=3 --ntasks=8 --requires=host:n[1,3-4] prog -x 1");
    expect("flux", "flux", "n[1,3]", NULL, "", RUN "-n 8 prog");
    expect("flux", "flux", "n[1,3]", NULL, "n2", RUN "--requires=-host:n2 -n 8 prog");
#undef RUN
}

static void test_openmpi(void **state)
{
    clearenv();
    setenv("SCR_B", "1", 1);
    expect("openmpi", "mpirun", "n[1,3,4]", uneven, "n2",
           "mpirun --host n1:3,n3:3,n4:2 -n 8 -x SCR_B prog -x 1");
    expect("openmpi", "mpirun", "n[1,3]", NULL, "n2",
           "mpirun --host n1:*,n3:* -x SCR_B -n 8 prog");
    expect("openmpi", "mpirun", "node1,node2,node4", gap, "node3",
           "mpirun --host localhost:2 --map-by :OVERSUBSCRIBE --mca mpi_yield_when_idle "
           "1 -n 1 -x "
           "SCR_NODE_NAME=node1 -x SCR_CACHE_BASE=/s/node1/cache -x "
           "SCR_CNTL_BASE=/s/node1/cntl prog -x 1 : -n 1 -x SCR_NODE_NAME=node4 -x "
           "SCR_CACHE_BASE=/s/node4/cache -x SCR_CNTL_BASE=/s/node4/cntl prog -x 1");
}

static void test_intel(void **state)
{
    expect("intel", "mpiexec", "n[1,3,4]", uneven, "n2",
           "mpiexec -hosts n1,n3,n4 -ppn 3 -n 8 prog -x 1");
    expect("intel", "mpiexec", "n[1,3]", NULL, "n2", "mpiexec -hosts n1,n3 -n 8 prog");
}

static void test_pals(void **state)
{
    expect("pals", "mpiexec", "n[1-3]", even, "",
           "mpiexec -n 6 --ppn 2 --hosts n1,n2,n3 prog -x 1");
    expect("pals", "mpiexec", "n[1,3]", NULL, "n2", "mpiexec --hosts n1,n3 -n 8 prog");
    expect("aprun", "aprun", "n[1-3]", even, "", "aprun -n 6 -N 2 -L n1,n2,n3 prog -x 1");
    expect("aprun", "aprun", "n[1,3]", NULL, "n2", "aprun -L n1,n3 -n 8 prog");
}

static void test_jsrun(void **state)
{
    expect("jsrun", "jsrun", "n[1-3]", even, "n4,n5",
           "jsrun --exclude_hosts=n4,n5 --nrs=3 --rs_per_host=1 --tasks_per_rs=2 "
           "--cpu_per_rs=ALL_CPUS prog -x 1");
    expect("jsrun", "jsrun", "n[1-3]", uneven, "", "jsrun --np=8 prog -x 1");
    expect("jsrun", "jsrun", "n[1,3]", NULL, "n2", "jsrun --exclude_hosts=n2 -n 8 prog");
}

static void test_lrun(void **state)
{
    expect("lrun", "lrun", "n[1-3]", even, "n4,n5",
           "lrun --exclude_hosts=n4,n5 -N 3 -T 2 prog -x 1");
    expect("lrun", "lrun", "n[1-3]", uneven, "", "lrun -N 3 -n 8 prog -x 1");
    expect("lrun", "lrun", "n[1,3]", NULL, "n2", "lrun --exclude_hosts=n2 -n 8 prog");
}

static void test_simulated(void **state)
{
    expect("hydra", "mpiexec", "node1,node2,node4", gap, "node3",
           "mpiexec -launcher fork -n 1 -env SCR_NODE_NAME node1 -env SCR_CACHE_BASE "
           "/s/node1/cache -env SCR_CNTL_BASE /s/node1/cntl prog -x 1 : -n 1 -env "
           "SCR_NODE_NAME node4 -env SCR_CACHE_BASE /s/node4/cache -env SCR_CNTL_BASE "
           "/s/node4/cntl prog -x 1");
}

/* ---- arguments ---- */

static void test_nodes(void **state)
{
    static const char *const wrong[] = {"",     "x",   "4x",         "x2",
                                        "0x2",  "4x0", "4x2x1",      "-4x2",
                                        "4 x2", "4xx", "99999999x1", "a"};
    int nodes = 0, ranks = 0;
    assert_int_equal(simulate_parse("4x2", &nodes, &ranks), 0);
    assert_int_equal(nodes * 100 + ranks, 402);
    assert_int_equal(simulate_parse("16", &nodes, &ranks), 0);
    assert_int_equal(nodes * 100 + ranks, 1601);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (simulate_parse(wrong[i], &nodes, &ranks) == 0) fail_msg("%s", wrong[i]);
    assert_int_equal(nodes * 100 + ranks, 1601);
}

static void test_failures(void **state)
{
    static const char *const wrong[] = {"node=5",
                                        "node=0",
                                        "node",
                                        "after=2",
                                        "node=1,after=x",
                                        "node=1,run=0",
                                        "node=1,how=fly",
                                        "node=1,while=x",
                                        "node=1,x",
                                        "node=1,y=2",
                                        "node=1,after=2miles",
                                        "node=1,after=2check"};
    simulate_failure list[SIMULATE_FAILURES];
    kvtree_error err = {""};
    int count = 0;
    assert_int_equal(
        simulate_parse_failures("node=3,after=2checkpoints", 4, list, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].node, "node3");
    assert_true(list[0].after == 2 && list[0].run == 1 && !list[0].hangs &&
                !list[0].busy && !list[0].done);
    assert_int_equal(
        simulate_parse_failures(
            "node=1,after=1checkpoint,run=2  node=4,how=hang,while=checkpoint,after=7", 4,
            list, &count, &err),
        0);
    assert_int_equal(count, 2);
    assert_true(list[0].after == 1 && list[0].run == 2);
    assert_true(list[1].after == 7 && list[1].run == 1 && list[1].hangs && list[1].busy);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err.text[0] = 0;
        if (simulate_parse_failures(wrong[i], 4, list, &count, &err) == 0 || !err.text[0])
            fail_msg("%s", wrong[i]);
    }
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmpi),   cmocka_unit_test(test_intel),
        cmocka_unit_test(test_pals),      cmocka_unit_test(test_jsrun),
        cmocka_unit_test(test_lrun),      cmocka_unit_test(test_slurm),
        cmocka_unit_test(test_hydra),     cmocka_unit_test(test_flux),
        cmocka_unit_test(test_simulated), cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
