/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank has no memory, at each allocation of a flush, of reading its map, and of a
 * fetch: all ranks get an error, the directory has an earlier dataset or none and no
 * temporary files, and the next try succeeds. */
#include "lists.h"
#include "nth_each_mpi.h"

static char folder[64], prefix[128];

/* Files of one rank only; and one part of a file that all ranks write. */
enum { OWN = 3, ALL = 4 };

/* Common to all tries of one way. */
typedef struct way {
    filo_options options;
    int count; /* files: OWN or ALL */
} way;

/* Makes the last file of the list a part of a file that all ranks write. */
static void share_last(list *l, filo_segment *segment)
{
    const int f = OWN;
    static char name[] = "shared/all";
    segment->container = name;
    segment->length = list_size(check_rank, f);
    segment->offset = 0;
    for (int r = 0; r < check_rank; r++)
        segment->offset += list_size(r, f);
    l->files[f].packed = 1;
    l->files[f].segments = 1;
    l->files[f].segment = segment;
}

static int do_flush(void *arg)
{
    const way *w = arg;
    list l;
    filo_segment segment;
    list_init(&l, folder, check_rank, w->count);
    if (w->count == ALL) share_last(&l, &segment);
    int rc = filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &w->options,
                        &nth_text);
    int held = nth_hold();
    CHECK_INT(nth_text.text[0] != 0, rc != 0);
    list_folder_sum(prefix);
    CHECK_INT(list_temporaries, 0);
    countdown = held;
    return rc;
}

static int do_fetch(void *arg)
{
    const way *w = arg;
    int ranks = 0, count = 0, held;
    filo_file *files = NULL;
    list l, back;
    list_init(&l, folder, check_rank, w->count);
    back = l;
    int rc = filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files,
                           &w->options, &nth_text);
    if (!rc) {
        held = nth_hold();
        for (int f = 0; f < w->count; f++) { /* not the shared file, which comes last */
            char path[300];
            snprintf(path, sizeof path, "%s.back", back.local[f]);
            strcpy(back.local[f], path);
            files[f].local = strdup(path);
        }
        countdown = held;
        CHECK(count == w->count || files[w->count].shared);
        rc = filo_fetch(MPI_COMM_WORLD, prefix, w->count, files, &w->options, &nth_text);
    }
    held = nth_hold();
    CHECK_INT(nth_text.text[0] != 0, rc != 0);
    if (!rc) list_expect(&back, check_rank);
    if (rc && count) list_expect_none(&back);
    if (count) list_unlink(&back);
    filo_files_free(count, files);
    countdown = held;
    return rc;
}

/* Registers the files, which are already in place: only their map is written. */
static int do_register(void *arg)
{
    list l;
    list_init(&l, folder, check_rank, 2);
    for (int f = 0; f < l.count; f++) {
        snprintf(l.local[f], sizeof l.local[f], "%s/%s", prefix, l.name[f]);
        l.files[f].has_crc = 0;
    }
    const way *w = arg;
    return filo_register(MPI_COMM_WORLD, prefix, ".scr/other.scr", l.count, l.files,
                         &w->options, &nth_text);
}

/* Flushes and fetches back. */
static void try_way(const char *method, const char *how, way *w)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s, flush", method, how);
    nth_each(name, do_flush, w, 12);
    snprintf(name, sizeof name, "%s%s, fetch", method, how);
    nth_each(name, do_fetch, w, 12);
}

int main(int argc, char **argv)
{
    static const char *const methods[] = {"sync", "pthread"};
    list l;
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/prefix", folder);
    list_create(&l, folder, check_rank, ALL);
    for (int m = 0; m < 2; m++)
        for (int packed = 0; packed < 2; packed++) {
            way w = {.count = OWN,
                     .options = {.method = methods[m],
                                 .checksum = 1,
                                 .map_limit = 400,
                                 .workers = 1,
                                 .container = packed ? 100000 : 0}};
            try_way(methods[m], packed ? ", packed" : "", &w);
            if (!packed && m == 0) nth_each("register", do_register, &w, 12);
            w.count = ALL;
            if (m == packed)
                try_way(methods[m], packed ? ", packed, shared" : ", shared", &w);
        }
    for (int nodes = 1; nodes <= 2; nodes++) { /* one node for both ranks, and one node
                                                  for each */
        const char node[] = {(char)('a' + (nodes - 1) * check_rank), 0};
        way w = {.count = OWN,
                 .options = {.checksum = 1,
                             .map_limit = 400,
                             .align = 4096,
                             .nodes = nodes,
                             .node = node}};
        try_way("sync", ", aligned", &w);
    }
    check_remove(folder);
    return check_end();
}
