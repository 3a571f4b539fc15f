/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank has no memory, at each allocation of a flush, of the reading of its map, and
 * of a fetch: all ranks are told, an earlier dataset or none is there, no temporary file,
 * and the next try succeeds. */
#include "lists.h"
#include "nth_each_mpi.h"

static char folder[64], prefix[128];

static int do_flush(void *arg)
{
    const filo_options *options = arg;
    list l;
    list_init(&l, folder, check_rank, 3);
    int rc =
        filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, options, &nth_text);
    int held = nth_hold();
    CHECK_INT(nth_text.text[0] != 0, rc != 0);
    list_folder_sum(prefix);
    CHECK_INT(list_temporaries, 0);
    countdown = held;
    return rc;
}

static int do_fetch(void *arg)
{
    const filo_options *options = arg;
    int ranks = 0, count = 0, held;
    filo_file *files = NULL;
    list l, back;
    list_init(&l, folder, check_rank, 3);
    back = l;
    int rc = filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, options,
                           &nth_text);
    if (!rc) {
        held = nth_hold();
        for (int f = 0; f < count; f++) {
            char path[300];
            snprintf(path, sizeof path, "%s.back", back.local[f]);
            strcpy(back.local[f], path);
            files[f].local = strdup(path);
        }
        countdown = held;
        rc = filo_fetch(MPI_COMM_WORLD, prefix, count, files, options, &nth_text);
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

/* The files that the fetch reads are in place already: only their map is written. */
static int do_register(void *arg)
{
    list l;
    list_init(&l, folder, check_rank, 2);
    for (int f = 0; f < l.count; f++) {
        snprintf(l.local[f], sizeof l.local[f], "%s/%s", prefix, l.name[f]);
        l.files[f].has_crc = 0;
    }
    return filo_register(MPI_COMM_WORLD, prefix, ".scr/other.scr", l.count, l.files, arg,
                         &nth_text);
}

int main(int argc, char **argv)
{
    static const char *const methods[] = {"sync", "pthread"};
    list l;
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/prefix", folder);
    list_create(&l, folder, check_rank, 3);
    for (int m = 0; m < 2; m++)
        for (int packed = 0; packed < 2; packed++) {
            char name[64];
            filo_options options = {.method = methods[m],
                                    .checksum = 1,
                                    .map_limit = 400,
                                    .workers = 1,
                                    .container = packed ? 100000 : 0};
            snprintf(name, sizeof name, "%s%s, flush", methods[m],
                     packed ? ", packed" : "");
            nth_each(name, do_flush, &options, 12);
            snprintf(name, sizeof name, "%s%s, fetch", methods[m],
                     packed ? ", packed" : "");
            nth_each(name, do_fetch, &options, 12);
            if (!packed && m == 0) nth_each("register", do_register, &options, 12);
        }
    check_remove(folder);
    return check_end();
}
