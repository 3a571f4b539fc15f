/* SPDX-License-Identifier: BSD-3-Clause */
/* Encode: what all schemes have in common. Look at the files, tell the neighbours, let
 * the flows read everything once and make the redundancy data, put the checksums into the
 * headers of all who list the files, and give the redundancy file its name when all are
 * well. */
#include "src/redset_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call of redset_encode on one process. */
typedef struct encoding {
    const redset *set;
    const kvtree *about;
    const redset_extras *extras; /* or NULL */
    redset_file *files;          /* of the caller */
    char name[REDSET_NAME_SIZE]; /* of the redundancy file */
    int dir;
    int spare;        /* the folder, or -1 */
    redset_list list; /* with a copy of the caller's array */
    uint32_t *crcs;   /* as found while reading */
    redset_shape shape;
    uint64_t chunk; /* bytes of a chunk */
    int64_t number; /* of the encode, when all lists are known */
    kvtree **lists; /* list as a tree, and those of the left neighbours, as in headers */
    redset_header *header;
    redset_flows *flows; /* NULL in a set of one */
    redset_streams streams;
    redset_store store;
} encoding;

static int inspect(const encoding *e, redset_file *file, char *text)
{
    struct stat st;
    int rc = redset_file_check(file, text);
    if (!rc && strcmp(file->name, e->name) == 0)
        rc = err_set(text, -EINVAL, "%s is the name of the redundancy file", file->name);
    if (!rc) rc = beneath_stat(e->dir, file->name, &st, text);
    if (rc) return rc;
    if (!S_ISREG(st.st_mode))
        return err_set(text, -EINVAL, "%s is not a regular file", file->name);
    file->size = (uint64_t)st.st_size;
    file->crc = 0;
    return 0;
}

static int make_list(encoding *e, char *text)
{
    kvtree *tree = redset_list_to_tree(&e->list);
    if (!tree) return err_sys(text, -ENOMEM, "list of %d files", e->list.count);
    kvtree_delete(&e->lists[0]);
    e->lists[0] = tree;
    return 0;
}

/* Everything that one process can find out alone. */
static int prepare(encoding *e, const char *folder, int count, const redset_file files[],
                   char *text)
{
    int rc = redset_file_name(&e->set->layout.place, e->name);
    if (!rc) rc = beneath_open_folder(folder, &e->dir, text);
    if (!rc && count < 0) rc = err_set(text, -EINVAL, "%d files", count);
    if (rc) return rc;
    e->lists = calloc((size_t)e->shape.failures + 1, sizeof *e->lists);
    if (!e->lists) return err_sys(text, -ENOMEM, "lists of files");
    e->list.rank = e->set->rank;
    e->list.unchecked = e->set->layout.unchecked;
    e->list.files = calloc((size_t)count + 1, sizeof *e->list.files);
    e->crcs = calloc((size_t)count + 1, sizeof *e->crcs);
    if (!e->list.files || !e->crcs) return err_sys(text, -ENOMEM, "%d files", count);
    e->list.count = count;
    for (int i = 0; i < count && !rc; i++) {
        e->list.files[i] = files[i];
        rc = inspect(e, &e->list.files[i], text);
    }
    if (!rc) rc = redset_list_check(&e->list, text);
    if (!rc) rc = redset_list_sum(&e->list, text);
    return rc ? rc : make_list(e, text);
}

/* Collective: rc is that of all that can fail before data flows, which all ranks agree
 * on, and on a description that is the same on every rank. */
static int check_about(const encoding *e, int rc, char *text)
{
    uint32_t crc = 0;
    bool equal = false;
    int summed = redset_tree_crc(e->about, &crc);
    if (!rc && summed) rc = err_sys(text, summed, "description");
    const int64_t facts[REDSET_VALUES] = {crc, (int64_t)kvtree_pack_size(e->about)};
    rc = redset_agree_equal(e->set->comm, rc, facts, &equal, text);
    if (rc || equal) return rc;
    return err_set(text, -EINVAL, "ranks differ in the description of what they encode");
}

/* Collective over the set, but not agreed: each process's list goes to its right
 * neighbours. Without memory for a list it is dropped, and who has none sends an empty
 * one, so that nobody waits. */
static int tell_neighbours(encoding *e, char *text)
{
    const redset_place *place = &e->set->layout.place;
    const kvtree *own = e->lists ? e->lists[0] : NULL;
    int rc = e->lists ? 0 : -ENOMEM;
    for (int d = 1; d <= e->shape.failures; d++) {
        int right = (place->member + d) % place->members;
        int left = (place->member + place->members - d) % place->members;
        kvtree *list = e->lists ? kvtree_new() : NULL;
        int told = kvtree_sendrecv(own, right, list, left, e->set->set);
        if (!rc) rc = list ? told : -ENOMEM;
        if (!e->lists) continue;
        kvtree_delete(&e->lists[d]);
        e->lists[d] = list;
    }
    return rc ? err_sys(text, rc, "exchange file lists") : 0;
}

/* A neighbour that failed has none, and says why itself. */
static bool has_lists(const encoding *e)
{
    for (int d = 0; d <= e->shape.failures; d++)
        if (kvtree_size(e->lists[d]) == 0) return false;
    return true;
}

static kvtree *build_header(const encoding *e)
{
    return redset_header_build(&e->set->layout, e->chunk, (uint64_t)e->number, e->about,
                               e->lists);
}

static int begin_flows(encoding *e, char *text)
{
    uint64_t *length = calloc((size_t)e->shape.members, sizeof *length);
    if (!length) return err_sys(text, -ENOMEM, "%d members", e->shape.members);
    redset_header_lengths(e->header, length);
    int rc = redset_flows_new(e->set, &e->shape, NULL, length, &e->flows, text);
    free(length);
    return rc;
}

static int begin(encoding *e, char *text)
{
    redset_streams *s = &e->streams;
    kvtree *tree = build_header(e);
    int rc = tree ? redset_header_parse(tree, &e->header, text)
                  : err_sys(text, -ENOMEM, "header");
    if (!rc) rc = redset_streams_init(e->header, s, text);
    if (!rc)
        rc = redset_logical_open(e->dir, &e->list, s->data, s->chunk, &s->logical, text);
    if (!rc && e->shape.members > 1) rc = begin_flows(e, text);
    if (!rc)
        rc = redset_store_begin(e->dir, e->name, e->spare, e->header->tree, &e->store,
                                text);
    e->store.unsynced = e->set->unsynced;
    s->store = &e->store;
    return rc;
}

/* Without redundancy the files are only read for their checksums. */
static int stream(encoding *e, char *text)
{
    int rc = 0;
    if (e->flows)
        rc = redset_flows_run(e->flows, &e->streams, text);
    else if (!e->list.unchecked)
        rc = redset_logical_skim(e->streams.logical, e->set->piece, text);
    return rc ? rc : redset_logical_finish(e->streams.logical, e->crcs, text);
}

/* Without checksums the list does not tell what was encoded, so chance must. */
static int draw_number(encoding *e, char *text)
{
    uint64_t random;
    int rc = replace_draw(&random);
    e->number = (uint32_t)random;
    return rc ? err_sys(text, rc, "random number") : 0;
}

/* The list again, now with checksums. The sum of all lists' checksums tells this encode
 * from others: it says which bytes of which files the redundancy data was made of. */
static int relist(encoding *e, char *text)
{
    uint32_t crc = 0;
    if (e->list.unchecked) return draw_number(e, text);
    for (int i = 0; i < e->list.count; i++)
        e->list.files[i].crc = e->crcs[i];
    int rc = make_list(e, text);
    if (rc) return rc;
    rc = redset_tree_crc(e->lists[0], &crc);
    e->number = crc;
    return rc ? err_sys(text, rc, "list of %d files", e->list.count) : 0;
}

/* The redundancy file gets the header that is true, and its name. */
static int complete(encoding *e, char *text)
{
    kvtree *header = build_header(e);
    if (!header) return err_sys(text, -ENOMEM, "header");
    int rc =
        redset_store_complete(&e->store, header, redset_streams_crc(&e->streams), text);
    kvtree_delete(&header);
    return rc ? rc : redset_store_commit(&e->store, text);
}

/* Collective over the set, but not agreed. */
static int size_chunks(encoding *e, char *text)
{
    uint64_t largest = e->list.size;
    int rc = MPI_SUCCESS;
    if (e->shape.members > 1)
        rc =
            MPI_Allreduce(&e->list.size, &largest, 1, MPI_UINT64_T, MPI_MAX, e->set->set);
    e->chunk = redset_chunk_size(&e->shape, largest);
    return redset_mpi(rc, text);
}

/* Collective: all that can fail before data flows, so that nothing but I/O can fail then.
 * rc is that of what a process did alone; who failed there takes part, so that nobody
 * waits. */
static int begin_all(encoding *e, int rc, char *text)
{
    char other[ERRTEXT_SIZE] = "";
    int sized = size_chunks(e, rc ? other : text);
    if (sized) return rc ? rc : sized; /* MPI fails */
    int told = tell_neighbours(e, rc ? other : text);
    if (!rc) rc = told;
    if (!rc && has_lists(e)) rc = begin(e, text);
    return check_about(e, rc, text);
}

/* This process is done, but for what the caller does. */
static int conclude(encoding *e, char *text)
{
    int rc = complete(e, text);
    for (int i = 0; i < e->list.count && !rc; i++) {
        e->files[i].size = e->list.files[i].size;
        e->files[i].crc = e->list.files[i].crc;
    }
    const redset_extras *extras = e->extras;
    return rc || !extras || !extras->last ? rc : extras->last(extras->arg, text);
}

/* Collective: to a redundancy file under its name. A redundancy file of an earlier encode
 * goes before the agreement that any new one waits for, so that whoever is killed leaves
 * no mixture of both. */
static int run(encoding *e, int rc, char *text)
{
    MPI_Comm comm = e->set->comm;
    rc = begin_all(e, rc, text);
    if (rc) return rc;

    rc = stream(e, text);
    if (!rc) rc = relist(e, text);
    if (!rc) rc = redset_store_retire(&e->store, text);
    rc = agree_sum(comm, rc, text, 1, &e->number);
    if (rc) return rc;

    /* once more, as there are checksums now */
    rc = e->list.unchecked ? 0 : tell_neighbours(e, text);
    if (!rc) rc = conclude(e, text);
    return agree(comm, rc, text);
}

/* On failure no redundancy file stays, not even one of an earlier encode: it would speak
 * of files that may have changed since. */
static void finish(encoding *e, bool failed)
{
    redset_store_abort(&e->store);
    if (failed && e->dir >= 0 && e->name[0]) beneath_unlink(e->dir, e->name, NULL);
    redset_flows_free(e->flows);
    redset_streams_done(&e->streams);
    for (int d = 0; e->lists && d <= e->shape.failures; d++)
        kvtree_delete(&e->lists[d]);
    free(e->lists);
    redset_header_free(e->header);
    redset_list_done(&e->list);
    free(e->crcs);
    io_close(&e->spare);
    io_close(&e->dir);
}

int redset_encode_with(redset *set, const char *folder, const kvtree *about, int count,
                       redset_file files[], const redset_extras *extras, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    encoding e = {.set = set,
                  .about = about,
                  .extras = extras,
                  .files = files,
                  .dir = -1,
                  .spare = -1,
                  .streams = {.fd = -1}};
    if (extras && extras->spare) beneath_open_folder(extras->spare, &e.spare, NULL);
    e.shape = redset_shape_of(&set->layout.place);
    int rc = run(&e, prepare(&e, folder, count, files, text), text);
    finish(&e, rc != 0);
    return redset_report(err, text, rc);
}

int redset_encode(redset *set, const char *folder, const kvtree *about, int count,
                  redset_file files[], char *err)
{
    return redset_encode_with(set, folder, about, count, files, NULL, err);
}
