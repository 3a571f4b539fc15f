/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call in every state. */
#include "plan/lifecycle.h"
#include "records.h"
#include <errno.h>

/* For each call: the missing call that its message names outside of a run, and in the
 * states idle, output, restart; NULL if the call is legal. Written from the documentation
 * of the calls, not from the code. */
static const struct {
    scr_call call;
    const char *name;
    const char *missing[4];
} table[] = {
    {SCR_CALL_INIT,
     "SCR_Init",
     {NULL, "SCR_Finalize", "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_FINALIZE, "SCR_Finalize", {"SCR_Init", NULL, NULL, NULL}},
    {SCR_CALL_ABANDON, "SCR_Abandon", {"SCR_Init", NULL, NULL, NULL}},
    {SCR_CALL_CONFIG_SET,
     "SCR_Config",
     {NULL, "SCR_Finalize", "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_NEED_CHECKPOINT,
     "SCR_Need_checkpoint",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_START_OUTPUT,
     "SCR_Start_output",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_START_CHECKPOINT,
     "SCR_Start_checkpoint",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_ROUTE_FILE, "SCR_Route_file", {NULL, NULL, NULL, NULL}},
    {SCR_CALL_ROUTE_FILE_PART, "SCR_Route_file_part", {NULL, NULL, NULL, NULL}},
    {SCR_CALL_COMPLETE_OUTPUT,
     "SCR_Complete_output",
     {"SCR_Init", "SCR_Start_output", NULL, "SCR_Complete_restart"}},
    {SCR_CALL_COMPLETE_CHECKPOINT,
     "SCR_Complete_checkpoint",
     {"SCR_Init", "SCR_Start_output", NULL, "SCR_Complete_restart"}},
    {SCR_CALL_HAVE_RESTART,
     "SCR_Have_restart",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_START_RESTART,
     "SCR_Start_restart",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_COMPLETE_RESTART,
     "SCR_Complete_restart",
     {"SCR_Init", "SCR_Start_restart", "SCR_Complete_output", NULL}},
    {SCR_CALL_FETCH_FILES,
     "SCR_Fetch_files",
     {"SCR_Init", "SCR_Start_restart", "SCR_Complete_output", NULL}},
    {SCR_CALL_FETCH_FILE_PARTS,
     "SCR_Fetch_file_parts",
     {"SCR_Init", "SCR_Start_restart", "SCR_Complete_output", NULL}},
    {SCR_CALL_DATASET_RANKS,
     "SCR_Dataset_ranks",
     {"SCR_Init", "SCR_Start_restart", "SCR_Complete_output", NULL}},
    {SCR_CALL_DATASET_FILES,
     "SCR_Dataset_files",
     {"SCR_Init", "SCR_Start_restart", "SCR_Complete_output", NULL}},
    {SCR_CALL_DATASET_FILE,
     "SCR_Dataset_file",
     {"SCR_Init", "SCR_Start_restart", "SCR_Complete_output", NULL}},
    {SCR_CALL_SHOULD_EXIT,
     "SCR_Should_exit",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_CURRENT,
     "SCR_Current",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_DELETE,
     "SCR_Delete",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
    {SCR_CALL_DROP,
     "SCR_Drop",
     {"SCR_Init", NULL, "SCR_Complete_output", "SCR_Complete_restart"}},
};

#define ROWS (sizeof table / sizeof *table)

static void table_is_whole(void **state)
{
    assert_int_equal(ROWS, SCR_CALLS);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(table[i].call, i);
        assert_string_equal(scr_call_name(table[i].call), table[i].name);
    }
}

static const char *missing_in(size_t row, int in)
{
    return table[row].missing[in < SCR_STATE_IDLE ? 0 : 1 + in - SCR_STATE_IDLE];
}

static void one(scr_state in, size_t row)
{
    char start[64], end[64];
    kvtree_error err = {"as before"};
    const char *missing = missing_in(row, (int)in);
    int rc = scr_lifecycle_check(in, table[row].call, &err);
    if (!missing) {
        assert_int_equal(rc, 0);
        assert_string_equal(err.text, "as before");
        return;
    }
    assert_int_equal(rc, -EPERM);
    assert_int_equal(scr_lifecycle_check(in, table[row].call, NULL), -EPERM);
    snprintf(start, sizeof start, "%s: ", table[row].name);
    snprintf(end, sizeof end, "; %s is missing", missing);
    assert_int_equal(strncmp(err.text, start, strlen(start)), 0);
    if (in == SCR_STATE_FINALIZED) {
        assert_says(err.text, ": SCR_Finalize has ended the run already; ");
        assert_says(err.text, "after another SCR_Init");
    } else if (in == SCR_STATE_ABANDONED) {
        assert_says(err.text, ": SCR_Abandon has ended the run already; ");
        assert_says(err.text, "after another SCR_Init_comm");
    } else {
        assert_says(err.text, end);
    }
}

static void every_call_in_every_state(void **state)
{
    for (int s = 0; s < SCR_STATES; s++)
        for (size_t row = 0; row < ROWS; row++)
            one((scr_state)s, row);
}

/* Following the advice in the messages leads to the wanted call. */
static void advice_leads_on(void **state)
{
    /* the state to which a legal call leads; -1: the same state */
    static const int leads_to[SCR_CALLS] = {
        [SCR_CALL_INIT] = SCR_STATE_IDLE,
        [SCR_CALL_FINALIZE] = SCR_STATE_FINALIZED,
        [SCR_CALL_START_OUTPUT] = SCR_STATE_OUTPUT,
        [SCR_CALL_START_CHECKPOINT] = SCR_STATE_OUTPUT,
        [SCR_CALL_COMPLETE_OUTPUT] = SCR_STATE_IDLE,
        [SCR_CALL_COMPLETE_CHECKPOINT] = SCR_STATE_IDLE,
        [SCR_CALL_START_RESTART] = SCR_STATE_RESTART,
        [SCR_CALL_COMPLETE_RESTART] = SCR_STATE_IDLE,
    };
    for (size_t row = 0; row < ROWS; row++)
        for (int from = 0; from < SCR_STATES; from++) {
            int in = from, steps = 0;
            while (missing_in(row, in)) {
                size_t next = 0;
                while (strcmp(table[next].name, missing_in(row, in)) != 0)
                    next++;
                assert_int_equal(
                    scr_lifecycle_check((scr_state)in, table[next].call, NULL), 0);
                in = leads_to[next];
                assert_true(++steps <= 3);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table_is_whole),
                                       cmocka_unit_test(every_call_in_every_state),
                                       cmocka_unit_test(advice_leads_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
