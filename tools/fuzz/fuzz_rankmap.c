/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as a rank filemap: a line for each key, with as many blanks before it as it
 * stands deep. In what is accepted no name leads out of its directory, or into SCR's, and
 * none is there twice; it is written again as a tree that is accepted, and says the same.
 * When memory ends, nothing is left of it. */
#include "fuzz.h"
#include "fuzz_lines.h"
#include "scavenge/rankmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name stays within its directory, and out of SCR's. */
static bool may_be_name(const char *name)
{
    size_t n = strlen(name);
    const char *part = name;
    if (n == 0 || n >= 1024) return false;
    for (size_t i = 0; i <= n; i++) {
        unsigned char c = (unsigned char)name[i];
        size_t length = (size_t)(name + i - part);
        if (i < n && (c < 0x20 || c == 0x7f)) return false;
        if (c != '/' && c != 0) continue;
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.') ||
            (length == 4 && strncmp(part, ".scr", 4) == 0))
            return false;
        part = name + i + 1;
    }
    return true;
}

static void check_files(const scavenge_rank *rank)
{
    for (int i = 0; i < rank->count; i++) {
        const scavenge_file *f = &rank->files[i];
        REQUIRE(f->size <= INT64_MAX);
        REQUIRE(may_be_name(f->name));
        REQUIRE(!f->redundancy || !strchr(f->name, '/'));
        for (int k = 0; k < i; k++)
            REQUIRE(strcmp(f->name, rank->files[k].name) != 0);
    }
}

/* It is accepted again, and says the same. */
static void check_again(const scavenge_rank *rank, const scr_dataset *d)
{
    scavenge_rank *again = NULL;
    scr_dataset same;
    kvtree *tree = kvtree_new();
    REQUIRE(scavenge_rank_to_tree(rank, d, tree) == 0);
    REQUIRE(scavenge_rank_from_tree(tree, &again, &same, NULL) == 0);
    REQUIRE(again->rank == rank->rank && again->count == rank->count);
    REQUIRE(same.id == d->id && strcmp(same.name, d->name) == 0);
    for (int i = 0; i < rank->count; i++) {
        const scavenge_file *a = &rank->files[i], *b = &again->files[i];
        REQUIRE(strcmp(a->name, b->name) == 0 && a->size == b->size && a->crc == b->crc &&
                a->has_crc == b->has_crc && a->redundancy == b->redundancy);
    }
    scavenge_rank_free(again);
    kvtree_delete(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    kvtree_error err = {""};
    kvtree *tree = fuzz_tree(text, size);
    scavenge_rank *rank = NULL;
    scr_dataset d;
    fuzz_memory_begin(SIZE_MAX);
    int rc = scavenge_rank_from_tree(tree, &rank, &d, &err);
    struct fuzz_memory used = fuzz_memory_end();
    REQUIRE(rc == 0 || rc == -EBADMSG);
    REQUIRE((rc == 0) == (rank != NULL) && (rc == 0) == (err.text[0] == 0));
    if (rc == 0) {
        REQUIRE(rank->rank >= 0 && rank->rank < d.ranks && d.complete);
        check_files(rank);
        check_again(rank, &d);
        rank = scavenge_rank_free(rank);
    }
    if (used.calls > 0) {
        fuzz_memory_begin(fuzz_hash(data, size) % used.calls);
        int failed = scavenge_rank_from_tree(tree, &rank, &d, &err);
        fuzz_memory_end();
        REQUIRE(failed < 0 || failed == rc);
        scavenge_rank_free(rank);
    }
    kvtree_delete(&tree);
    free(text);
    return 0;
}
