/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR's records without memory. Each allocation fails once while a filemap, an index with
 * its summary, halt, flush and nodes file, and a configuration are written to files and
 * read back. Files that were written before can still be read. */
#include "records.h"

#include "configs.h"
#include "indexes.h"
#include "nth_each.h"

#include "cache/filemap.h"
#include "config/reddesc.h"
#include "halt/halt.h"
#include "prefix/flush_file.h"
#include "prefix/nodes.h"
#include <errno.h>

static const struct scratch *here;

/* ---- filemap ---- */

#define FILEMAP "filemap_0.scriinfo"
#define OWNER "user1/scr.7"

static int fill_filemap(scr_filemap *map)
{
    static const char *const paths[] = {"/c/" OWNER "/scr.dataset.3/a/rank_5",
                                        "/c/" OWNER "/scr.dataset.3/1_of_4_in_0.xor"};
    scr_dataset d = checkpoint(3);
    scr_reddesc desc = {.type = "XOR",
                        .group = "NODE",
                        .store = "/c",
                        .interval = 1,
                        .set_size = 4,
                        .set_failures = 1};
    scr_reddesc_place place = {.directory = "/c/" OWNER, .groups = 1, .group_size = 4};
    kvtree *tree = kvtree_new();
    int rc = tree ? scr_dataset_to_tree(&d, tree) : -ENOMEM;
    if (!rc) rc = scr_filemap_set_dataset(map, 3, 5, tree);
    kvtree_unset_all(tree);
    if (!rc) rc = scr_reddesc_to_tree(&desc, &place, tree);
    if (!rc) rc = scr_filemap_set_reddesc(map, 3, 5, tree);
    if (!rc) rc = scr_filemap_set_expected(map, 3, 5, 2);
    for (int i = 0; i < 2 && !rc; i++) {
        kvtree *meta = scr_filemap_add_file(map, 3, 5, paths[i]);
        rc = meta ? scr_meta_set_place(meta, paths[i]) : -ENOMEM;
    }
    kvtree_delete(&tree);
    return rc;
}

/* The names in the master filemap, which is missing, and in the directory. */
static int do_names(void)
{
    kvtree *names = kvtree_new();
    int rc = names ? scr_filemap_names(here->dir, 0, names, &nth_text) : -ENOMEM;
    if (rc == -ENOENT) rc = scr_filemap_names(here->dir, 1, names, &nth_text);
    if (!rc) assert_int_equal(kvtree_size(names), 1);
    kvtree_delete(&names);
    return rc;
}

static int do_filemap(void *arg)
{
    scr_filemap *map = kvtree_new(), *back = kvtree_new();
    int count = 0, *list = NULL;
    int rc = map && back ? fill_filemap(map) : -ENOMEM;
    if (!rc) rc = scr_filemap_write(here->dir, FILEMAP, map, &nth_text);
    if (!rc) rc = scr_filemap_read(here->dir, FILEMAP, OWNER, back, &nth_text);
    if (!rc) rc = do_names();
    if (!rc) rc = scr_filemap_list_ranks_of(back, 3, &count, &list);
    if (!rc) assert_int_equal(count, 1);
    if (!rc) assert_int_equal(kvtree_size(scr_filemap_files(back, 3, 5)), 2);
    if (!rc) assert_non_null(kvtree_get(scr_filemap_get_reddesc(back, 3, 5), "BASE"));
    free(list);
    list = NULL;
    if (!rc) rc = scr_filemap_move_rank(map, 5, back);
    if (!rc) rc = scr_filemap_remove_dataset(back, 3);
    kvtree_delete(&map);
    kvtree_delete(&back);
    return rc;
}

static int do_filemap_read(void *arg)
{
    scr_filemap *map = kvtree_new();
    int rc = map ? scr_filemap_read(here->dir, FILEMAP, OWNER, map, &nth_text) : -ENOMEM;
    assert_int_equal(kvtree_size(map) != 0, rc == 0);
    kvtree_delete(&map);
    return rc;
}

/* ---- prefix directory ---- */

static int do_index(void *arg)
{
    scr_index *index = kvtree_new(), *back = kvtree_new();
    scr_dataset d = checkpoint(18), found, *list = NULL;
    int count = 0, rc = index && back ? scr_index_start(index) : -ENOMEM;
    if (!rc) rc = scr_index_add(index, &d, 1);
    if (!rc) rc = scr_index_set_current(index, &d);
    if (!rc) rc = scr_index_mark_fetched(index, &d);
    if (!rc)
        rc = kvtree_file_write(here->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index,
                               &nth_text);
    if (!rc) rc = scr_index_read(here->dir, back, &nth_text);
    if (!rc) rc = scr_index_list(back, &list, &count);
    if (!rc) assert_int_equal(count, 1);
    free(list);
    list = NULL;
    if (!rc) rc = scr_summary_write(here->dir, &d, &nth_text);
    if (!rc) rc = scr_summary_read(here->dir, &found, &nth_text);
    kvtree_delete(&index);
    kvtree_delete(&back);
    return rc;
}

/* An index that cannot be read for lack of memory does not count as lost. */
static int do_index_read(void *arg)
{
    scr_index *index = kvtree_new();
    scr_dataset d;
    int rc = index ? scr_index_read(here->dir, index, &nth_text) : -ENOMEM;
    if (!rc) assert_int_equal(scr_index_get(index, "scr.dataset.18", &d), 0);
    kvtree_delete(&index);
    return rc;
}

static int do_halt(void *arg)
{
    char reason[SCR_HALT_REASON_SIZE];
    kvtree *halt = kvtree_new(), *back = kvtree_new();
    scr_halt_end end = {0, NULL};
    int rc = halt && back ? scr_halt_add_reason(halt, "by a test") : -ENOMEM;
    if (rc == 1) rc = scr_halt_write(here->dir, halt, &nth_text);
    if (!rc) rc = scr_halt_read(here->dir, back, &nth_text);
    if (!rc) assert_true(scr_halt_check(back, &end, 1000, reason));
    kvtree_delete(&halt);
    kvtree_delete(&back);
    return rc;
}

static int do_flush_file(void *arg)
{
    kvtree *flush = kvtree_new();
    int count = 0, *ids = NULL, rc = flush ? 0 : -ENOMEM;
    if (!rc) rc = scr_flush_file_set(flush, 4, "c4", "CACHE", 1);
    if (!rc) rc = scr_flush_file_write(here->dir, flush, &nth_text);
    if (!rc) rc = scr_flush_file_list(flush, &count, &ids);
    if (!rc) assert_int_equal(count, 1);
    free(ids);
    kvtree_delete(&flush);
    return rc;
}

/* ---- configuration ---- */

#define LINES                                                                            \
    "SCR_COPY_TYPE=XOR\nSCR_CACHE_SIZE=3\nSTORE=/a COUNT=2\n"                            \
    "CKPT=0 INTERVAL=1 GROUP=NODE STORE=/a TYPE=XOR SET_SIZE=8\n"                        \
    "GROUPS=n1 POWER=psu1\nSCR_LOG_ENABLE=$ONE_VARIABLE.x\n"
#define YAML                                                                             \
    "SCR_COPY_TYPE: RS\nSTORE:\n  /b: {COUNT: 2}\n"                                      \
    "GROUPS:\n  n1: {POWER: psu1}\n"

/* All answers from the texts. */
static int is_known(const scr_config *config, const scr_descs *descs, const char *text)
{
    const char *type = scr_config_get(config, "SCR_COPY_TYPE", NULL);
    const char *flush = scr_config_get(config, "SCR_FLUSH", NULL);
    const char *group = scr_groups_value(&descs->groups, "POWER", "n1");
    const scr_store *store = scr_stores_find(&descs->stores, *text == 'Y' ? "/b" : "/a");
    return type && strcmp(type, *text == 'Y' ? "RS" : "XOR") == 0 && flush &&
           strcmp(flush, "7") == 0 && group && strcmp(group, "psu1") == 0 && store &&
           store->count == 2;
}

/* A lack of memory is reported as a problem, or by a code; nothing is left out
 * silently. */
static int do_config(void *arg)
{
    scr_config config;
    scr_descs descs;
    scr_problems problems = {.count = 0};
    int loaded = -1, rc = scr_config_init(&config);
    if (!rc) {
        const char *text = (const char *)arg + 1; /* behind L or Y */
        rc = scr_config_text_read("f", text, strlen(text), config.user, &problems);
        if (!rc) rc = scr_config_set(&config, "SCR_FLUSH=7", &nth_text);
        if (!rc) loaded = rc = scr_descs_load(&config, &descs, &problems);
        int held = nth_hold();
        if (!rc && !problems.count) assert_true(is_known(&config, &descs, arg));
        countdown = held;
        if (!loaded) scr_descs_done(&descs);
        scr_config_done(&config);
    }
    if (!rc && problems.count) rc = -ENOMEM; /* the text has no mistake */
    if (problems.text) snprintf(nth_text.text, sizeof nth_text.text, "%s", problems.text);
    scr_problems_done(&problems);
    return rc;
}

static int do_nodes(void *arg)
{
    int nodes = 4, rc = scr_nodes_write(here->dir, nodes, &nth_text);
    if (!rc) rc = scr_nodes_read(here->dir, &nodes, &nth_text);
    assert_int_equal(nodes, 4);
    return rc;
}

static void each_allocation_may_fail(void **state)
{
    char lines[] = "L" LINES, yaml[] = "Y" YAML;
    here = *state;
    conf_clean_env();
    nth_each("filemap", do_filemap, NULL, 20);
    nth_each("filemap, read", do_filemap_read, NULL, 10);
    nth_each("index", do_index, NULL, 20);
    nth_each("index, read", do_index_read, NULL, 5);
    nth_each("halt", do_halt, NULL, 5);
    nth_each("flush file", do_flush_file, NULL, 5);
    nth_each("nodes file", do_nodes, NULL, 5);
    nth_each("lines", do_config, lines, 10);
    nth_each("YAML", do_config, yaml, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {scratch_test(each_allocation_may_fail)};
    setenv("ONE_VARIABLE", "one", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
