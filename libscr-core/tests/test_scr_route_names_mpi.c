/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of SCR_Route_file in a restart is linear in the number of files of a rank, not
 * quadratic. The linker wraps the functions that count steps. */
#include "check.h"

#include "ops/bring_parts.h"
#include "plan/file_names.h"
#include "plan/part_name.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdbool.h>
#include <string.h>

enum { DATASET = 7, FEW = 2000, MANY = 20000 };

#define OWNER "me/scr.job"
#define PREFIX "/pfs/me/run"

static long steps;

bool __real_scr_file_match_try(scr_file_match *m, const char *file, const char *orig);
bool __wrap_scr_file_match_try(scr_file_match *m, const char *file, const char *orig);
bool __wrap_scr_file_match_try(scr_file_match *m, const char *file, const char *orig)
{
    steps++;
    return __real_scr_file_match_try(m, file, orig);
}

kvtree_elem *__real_scr_kvtree_elem_next(const kvtree_elem *elem);
kvtree_elem *__wrap_scr_kvtree_elem_next(const kvtree_elem *elem);
kvtree_elem *__wrap_scr_kvtree_elem_next(const kvtree_elem *elem)
{
    steps++;
    return __real_scr_kvtree_elem_next(elem);
}

/* How the names of the files differ. */
typedef struct naming {
    const char *file;  /* below the prefix directory */
    const char *orig;  /* at output */
    const char *asked; /* at the restart */
    bool is_below;     /* the name at the restart is below the prefix directory */
} naming;

static const naming namings[] = {
    {"ckpt/rank_%d", "ckpt/rank_%d", "ckpt/rank_%d", true},
    {"ckpt/rank_%d", "ckpt/rank_%d", "rank_%d", false},
    {"ckpt/rank_%d", "../ckpt/rank_%d", "../ckpt/rank_%d", false},
    {"d%d/data", "d%d/data", "d%d/data", true}, /* all in one list */
};

static void add_file(struct scr *scr, const char *file, const char *orig)
{
    char path[200];
    snprintf(path, sizeof path, "/dev/shm/" OWNER "/scr.dataset.%d/%s", DATASET, file);
    kvtree *meta = scr_filemap_add_file(scr->cache.map, DATASET, 3, path);
    CHECK(meta && kvtree_util_set_str(meta, SCR_META_TYPE, SCR_META_FULL) == 0);
    CHECK_INT(kvtree_util_set_str(meta, SCR_META_ORIG, orig), 0);
    CHECK_INT(kvtree_util_set_bytecount(meta, SCR_META_SIZE, 8), 0);
}

static const char *look_up(struct scr *scr, const char *name, const char *below,
                           int *files)
{
    scr_file_match match;
    const char *found;
    scr_file_match_begin(&match, name, below, PREFIX);
    CHECK_INT(scr_route_look_up(scr, DATASET, &match, &found), 0);
    *files = match.files;
    return found;
}

static void begin(struct scr *scr, scr_job *job)
{
    *scr = (struct scr){.cache = {.job = job}};
    snprintf(job->owner, sizeof job->owner, OWNER);
    scr->cache.map = kvtree_new();
}

static void end(struct scr *scr)
{
    scr_route_forget(scr);
    CHECK(!scr->restart.names);
    kvtree_delete(&scr->cache.map);
}

/* Counts the steps to find each of count files. */
static long count_steps(const naming *n, int count)
{
    static struct scr scr;
    static scr_job job;
    char file[100], orig[100], asked[100];
    int files;
    begin(&scr, &job);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, n->file, i);
        snprintf(orig, sizeof orig, n->orig, i);
        add_file(&scr, file, orig);
    }
    steps = 0;
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, n->file, i);
        snprintf(asked, sizeof asked, n->asked, i);
        const char *found = look_up(&scr, asked, n->is_below ? file : NULL, &files);
        CHECK(found && strcmp(found, file) == 0);
        CHECK_INT(files, 1);
    }
    end(&scr);
    return steps;
}

static void test_linear(void)
{
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        const long few = count_steps(&namings[i], FEW);
        const long many = count_steps(&namings[i], MANY);
        printf("naming %zu: %d files take %ld steps, %d files %ld\n", i, FEW, few, MANY,
               many);
        CHECK(many <= 4 * (long)MANY);
        CHECK(few <= 4 * (long)FEW);
    }
}

/* Counts the steps for parts of one file, or one part of each of count files. */
static long count_part_steps(const char *shared, int count)
{
    static struct scr scr;
    static scr_job job;
    char name[200], file[100], path[200];
    begin(&scr, &job);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, shared, i);
        CHECK_INT(scr_part_name(file, (uint64_t)i * 8, sizeof name, name), 0);
        add_file(&scr, name, name);
    }
    steps = 0;
    for (int i = 0; i < count; i++) {
        const scr_part wanted = {(uint64_t)i * 8 + 3, 4}, whole = {(uint64_t)i * 8, 8};
        const char *found = "";
        uint64_t at = 9;
        scr_file_match match;
        snprintf(file, sizeof file, shared, i);
        scr_file_match_begin(&match, file, file, PREFIX);
        CHECK_INT(scr_route_look_up_part(&scr, DATASET, &match, &whole, &found, &at), 0);
        snprintf(path, sizeof path, "%s.scr-part.%d", file, i * 8);
        CHECK(at == 0 && strstr(found, path));
        scr_file_match_begin(&match, file, file, PREFIX);
        CHECK_INT(scr_route_look_up_part(&scr, DATASET, &match, &wanted, &found, &at), 0);
        CHECK(at == 3 && strstr(found, path));
    }
    end(&scr);
    return steps;
}

/* Counts the steps for bytes in brought parts of other ranks. */
static long count_brought_steps(int count)
{
    static struct scr scr;
    static scr_job job;
    char name[200], path[SCR_MAX_FILENAME];
    begin(&scr, &job);
    scr.lifecycle.open.id = DATASET;
    scr.restart.asked = kvtree_new();
    scr.restart.brought = kvtree_new();
    for (int i = 0; i < count; i++) {
        CHECK(kvtree_setf(scr.restart.asked, NULL, "ckpt/all PART %d 8", i * 8));
        CHECK_INT(scr_part_name("ckpt/all", (uint64_t)i * 8, sizeof name, name), 0);
        CHECK(kvtree_set_kv(scr.restart.brought, name, name));
    }
    steps = 0;
    for (int i = 0; i < count; i++) {
        const scr_part wanted = {(uint64_t)i * 8 + 3, 4}, both = {(uint64_t)i * 8, 9};
        uint64_t at = 9;
        CHECK_INT(scr_bring_find_part(&scr, "ckpt/all", &wanted, path, &at), 0);
        CHECK_INT(scr_part_name("ckpt/all", (uint64_t)i * 8, sizeof name, name), 0);
        CHECK(at == 3 && strcmp(path, name) == 0);
        CHECK_INT(scr_bring_find_part(&scr, "ckpt/all", &both, path, &at), -ENOENT);
    }
    scr_part_memo_forget(&scr.restart.asked_parts);
    kvtree_delete(&scr.restart.asked);
    kvtree_delete(&scr.restart.brought);
    end(&scr);
    return steps;
}

/* Counts the steps for files on the prefix directory, by a bare name. */
static long count_direct_steps(int count)
{
    static struct scr scr;
    char file[100], path[SCR_MAX_FILENAME];
    scr = (struct scr){.prefix = {.path = (char *)PREFIX}};
    scr.prefix.direct.files = kvtree_new();
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, "ckpt/rank_%d", i);
        CHECK(scr_file_names_add(scr.prefix.direct.files, file, NULL));
    }
    steps = 0;
    for (int i = 0; i < count; i++) {
        scr_file_match match;
        snprintf(file, sizeof file, "rank_%d", i);
        scr_file_match_begin(&match, file, NULL, PREFIX);
        CHECK_INT(scr_direct_find(&scr.prefix, &match, path), 0);
        CHECK(match.files == 1 && strcmp(strrchr(path, '/') + 1, file) == 0);
    }
    kvtree_delete(&scr.prefix.direct.files);
    return steps;
}

static void test_parts(void)
{
    const long one = count_part_steps("ckpt/all", MANY),
               each = count_part_steps("ckpt/all_%d", MANY),
               brought = count_brought_steps(MANY), direct = count_direct_steps(MANY);
    printf("%d parts of a file take %ld steps, of %d files %ld, of other ranks %ld, "
           "on the prefix directory %ld\n",
           MANY, one, MANY, each, brought, direct);
    CHECK(one <= 5 * (long)MANY && each <= 5 * (long)MANY);
    CHECK(brought <= 2 * (long)MANY && direct <= 4 * (long)MANY);
}

/* The results are the same as those of a walk through all files. */
static void test_answers(void)
{
    static struct scr scr;
    static scr_job job;
    int files;
    begin(&scr, &job);
    add_file(&scr, "a/x", "../a/x");
    add_file(&scr, "b/x", "deep/./x");
    add_file(&scr, "c/target", "c/link");
    CHECK(strcmp(look_up(&scr, "a/x", "a/x", &files), "a/x") == 0);
    CHECK(strcmp(look_up(&scr, "b/x", "sub/b/x", &files), "b/x") == 0);
    CHECK(strcmp(look_up(&scr, "deep/./x", "sub/deep/x", &files), "b/x") == 0);
    CHECK_INT(files, 1);
    CHECK(strcmp(look_up(&scr, "c/link", NULL, &files), "c/target") == 0);
    look_up(&scr, "x", NULL, &files);
    CHECK_INT(files, 2);
    CHECK(!look_up(&scr, "y", "y", &files));
    CHECK(!look_up(&scr, "..", NULL, &files));
    CHECK_INT(files, 0);
    end(&scr);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    test_answers();
    test_linear();
    test_parts();
    return check_end();
}
