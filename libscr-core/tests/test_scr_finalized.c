/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that would abort the program if they reached MPI: without a communicator, and
 * after MPI_Finalize. */
#include "check.h"
#include "scr.h"

/* The communicators of an application that forgets SCR_Finalize, for the leak sanitizer.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libmpi\n";
}

static void use_folder(const char *folder)
{
    setenv("SCR_PREFIX", folder, 1);
    setenv("SCR_CNTL_BASE", folder, 1);
    setenv("SCR_CACHE_BASE", folder, 1);
    setenv("SCR_COPY_TYPE", "SINGLE", 1);
}

static void test_no_communicator(void)
{
    CHECK_INT(SCR_Init_comm(MPI_COMM_NULL), SCR_ERR_ARGUMENT);
    CHECK_INT(SCR_Finalize(), SCR_ERR_STATE);
}

static void test_after_mpi(void)
{
    int flag = 7;
    char name[SCR_MAX_FILENAME] = "x";
    CHECK_INT(SCR_Need_checkpoint(&flag), SCR_ERR_STATE);
    CHECK_INT(flag, 0);
    flag = 7;
    CHECK_INT(SCR_Have_restart(&flag, name), SCR_ERR_STATE);
    CHECK_INT(flag, 0);
    CHECK_STR(name, "");
    flag = 7;
    CHECK_INT(SCR_Should_exit(&flag), SCR_ERR_STATE);
    CHECK_INT(flag, 0);
    CHECK_INT(SCR_Start_output("a", SCR_FLAG_CHECKPOINT), SCR_ERR_STATE);
    CHECK_INT(SCR_Delete("a"), SCR_ERR_STATE);
    CHECK_INT(SCR_Init(), SCR_ERR_STATE);
    CHECK_INT(SCR_Finalize(), SCR_ERR_STATE);
}

int main(int argc, char **argv)
{
    char folder[64];
    check_begin(&argc, &argv);
    check_folder(folder);
    use_folder(folder);
    test_no_communicator();
    CHECK_INT(SCR_Init(), SCR_SUCCESS);
    check_remove(folder);
    /* as an application that forgets SCR_Finalize */
    int failed = check_end(), before = check_failures;
    test_after_mpi();
    return failed || check_failures > before;
}
