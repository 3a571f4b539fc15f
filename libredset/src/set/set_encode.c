/* SPDX-License-Identifier: BSD-3-Clause */
/* Encode, for all schemes: inspects the files, sends their lists to the neighbors, runs
 * the flows, which read everything once and compute the redundancy data, stores the
 * checksums in the headers that list the files, and names the redundancy file when all
 * ranks have succeeded. */
#include "src/set/flow_engine.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One encode on one process, which is one member. */
typedef struct encode {
    const redset *set;
    const kvtree *about;
    const redset_extras *extras; /* or NULL */
    redset_file *files;          /* the caller's array */
    char name[REDSET_NAME_SIZE]; /* of the redundancy file */
    int dir;
    int spare;        /* spare directory, or -1 */
    redset_list list; /* with a copy of the caller's array */
    redset_shape shape;
    uint64_t chunk;   /* bytes of a chunk */
    int64_t number;   /* number of the encode, when all lists are known */
    kvtree **lists;   /* list as a tree, and the lists of the left neighbors, as in
                         headers */
    uint64_t *length; /* of flows */
    redset_header *header;
    redset_engine *engine; /* NULL in a set of one */
    redset_streams streams;
} encode;

/* ---- lists ---- */

static int encode_inspect(const encode *e, redset_file *file, redset_error *err)
{
    struct stat st;
    int rc = redset_file_check(file, err);
    if (!rc && strcmp(file->name, e->name) == 0)
        rc = err_set(err, -EINVAL, "%s is the name of the redundancy file", file->name);
    if (!rc) rc = beneath_stat(e->dir, file->name, &st, err);
    if (rc) return rc;
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "%s is not a regular file", file->name);
    file->size = (uint64_t)st.st_size;
    file->mode = st.st_mode & 0777;
    file->crc = 0;
    return 0;
}

static int encode_make_list(encode *e, redset_error *err)
{
    kvtree *tree = redset_list_to_tree(&e->list);
    if (!tree) return err_sys(err, -ENOMEM, "list of %d files", e->list.count);
    kvtree_delete(&e->lists[0]);
    e->lists[0] = tree;
    return 0;
}

/* Does all checks that a process can make alone. */
static int encode_prepare(encode *e, const char *folder, int count, redset_error *err)
{
    int rc = redset_file_name(&e->set->layout.place, e->name);
    if (!rc && !folder) rc = err_set(err, -ENOMEM, "no memory");
    if (!rc) rc = beneath_open_folder(folder, &e->dir, err);
    if (!rc && count < 0) rc = err_set(err, -EINVAL, "%d files", count);
    if (rc) return rc;
    e->lists = calloc((size_t)e->shape.failures + 1, sizeof *e->lists);
    e->length = calloc((size_t)e->shape.members, sizeof *e->length);
    if (!e->lists || !e->length) return err_sys(err, -ENOMEM, "lists of files");
    e->list.rank = e->set->world->local[0];
    e->list.unchecked = e->set->layout.unchecked;
    e->list.files = calloc((size_t)count + 1, sizeof *e->list.files);
    if (!e->list.files) return err_sys(err, -ENOMEM, "%d files", count);
    e->list.count = count;
    for (int i = 0; i < count && !rc; i++) {
        e->list.files[i] = e->files[i];
        rc = encode_inspect(e, &e->list.files[i], err);
    }
    if (!rc) rc = redset_list_check(&e->list, err);
    if (!rc) rc = redset_list_sum(&e->list, err);
    return rc ? rc : encode_make_list(e, err);
}

/* Collective over the set, not agreed: sends this process's list to its right neighbors.
 * A process without memory still takes part, with an empty list, so that no process
 * blocks. */
static int encode_pass_lists(encode *e, redset_error *err)
{
    redset_transport *t = e->set->members;
    kvtree *own = e->lists ? e->lists[0] : NULL;
    int rc = e->lists ? 0 : -ENOMEM;
    for (int d = 1; d <= e->shape.failures; d++) {
        kvtree *list = e->lists ? kvtree_new() : NULL;
        int passed = t->shift(t, d, &own, &list);
        if (!rc) rc = list ? passed : -ENOMEM;
        if (!e->lists) continue;
        kvtree_delete(&e->lists[d]);
        e->lists[d] = list;
    }
    return rc ? err_sys(err, rc, "exchange file lists") : 0;
}

/* Whether all lists have arrived. A neighbor that failed has sent an empty list, and
 * reports the error itself. */
static bool encode_has_lists(const encode *e)
{
    for (int d = 0; d <= e->shape.failures; d++)
        if (kvtree_size(e->lists[d]) == 0) return false;
    return true;
}

/* ---- before data flows ---- */

static kvtree *encode_build_header(const encode *e)
{
    return redset_header_build(&e->set->layout, e->chunk, (uint64_t)e->number, e->about,
                               e->lists);
}

static int encode_begin(encode *e, redset_error *err)
{
    redset_streams *s = &e->streams;
    kvtree *tree = encode_build_header(e);
    int rc = tree ? redset_header_parse(tree, &e->header, err)
                  : err_sys(err, -ENOMEM, "header");
    if (!rc) rc = redset_streams_init(e->header, s, err);
    if (!rc)
        rc = redset_file_stream_open(e->dir, &e->list, s->data, s->chunk, &s->files, err);
    if (rc) return rc;
    redset_header_lengths(e->header, e->length);
    if (e->shape.members > 1)
        rc = redset_engine_new(e->set, NULL, e->length, &e->engine, err);
    if (!rc)
        rc = redset_redundancy_file_begin(e->dir, e->name, e->spare, e->header->tree,
                                          &s->out, err);
    s->out.unsynced = e->set->unsynced;
    return rc;
}

/* Collective over the set, not agreed. */
static int encode_size_chunks(encode *e, redset_error *err)
{
    redset_transport *t = e->set->members;
    int64_t largest = (int64_t)e->list.size;
    int rc = e->shape.members > 1 ? t->greatest(t, 1, &largest, err) : 0;
    e->chunk = redset_shape_chunk(&e->shape, (uint64_t)largest);
    return rc;
}

/* Collective: agrees on rc, and checks that the description is the same on every rank. */
static int encode_check_about(const encode *e, int rc, redset_error *err)
{
    uint32_t crc = 0;
    bool equal = false;
    int summed = redset_tree_crc(e->about, &crc);
    if (!rc && summed) rc = err_sys(err, summed, "description");
    const int64_t facts[REDSET_VALUES] = {crc, (int64_t)kvtree_pack_size(e->about)};
    rc = redset_transport_compare(e->set->world, rc, facts, &equal, err);
    if (rc || equal) return rc;
    return err_set(err, -EINVAL, "ranks differ in the description of what they encode");
}

/* Collective: does everything that can fail before data flows; after that only I/O can
 * fail. rc is the result of this process's own checks; a process that failed takes part,
 * so that no process blocks. */
static int encode_begin_all(encode *e, int rc, redset_error *err)
{
    redset_error other = {""};
    int sized = encode_size_chunks(e, rc ? &other : err);
    if (sized) return rc ? rc : sized; /* the transport fails */
    int passed = encode_pass_lists(e, rc ? &other : err);
    if (!rc) rc = passed;
    if (!rc && encode_has_lists(e)) rc = encode_begin(e, err);
    return encode_check_about(e, rc, err);
}

/* ---- data ---- */

/* Without redundancy the files are only read for their checksums. */
static int encode_stream(encode *e, redset_error *err)
{
    redset_port port = {.streams = &e->streams, .err = err};
    if (e->engine)
        redset_engine_run(e->engine, &port);
    else if (!e->list.unchecked)
        port.rc = redset_file_stream_skim(e->streams.files, e->set->piece, err);
    return port.rc ? port.rc : redset_file_stream_check_sizes(e->streams.files, err);
}

/* Without checksums, lists do not identify an encode, so random numbers must. */
static int encode_draw_number(encode *e, redset_error *err)
{
    uint64_t random;
    int rc = batch_draw(&random);
    e->number = (uint32_t)random;
    return rc ? err_sys(err, rc, "random number") : 0;
}

/* Builds the list again, with checksums. The sum of the checksums of all lists identifies
 * the encode, because it depends on all bytes of all files. */
static int encode_add_checksums(encode *e, redset_error *err)
{
    uint32_t crc = 0;
    if (e->list.unchecked) return encode_draw_number(e, err);
    redset_file_stream_set_crcs(e->streams.files, e->list.files);
    int rc = encode_make_list(e, err);
    if (rc) return rc;
    rc = redset_tree_crc(e->lists[0], &crc);
    e->number = crc;
    return rc ? err_sys(err, rc, "list of %d files", e->list.count) : 0;
}

/* Gives the redundancy file its final header and its name. */
static int encode_complete(encode *e, redset_error *err)
{
    redset_streams *s = &e->streams;
    kvtree *header = encode_build_header(e);
    if (!header) return err_sys(err, -ENOMEM, "header");
    int rc = redset_redundancy_file_complete(&s->out, header, redset_streams_crc(s), err);
    kvtree_delete(&header);
    return rc ? rc : redset_redundancy_file_commit(&s->out, err);
}

/* The last step of this process, followed by the caller's last step. */
static int encode_conclude(encode *e, redset_error *err)
{
    int rc = encode_complete(e, err);
    for (int i = 0; i < e->list.count && !rc; i++) {
        e->files[i].size = e->list.files[i].size;
        e->files[i].crc = e->list.files[i].crc;
        e->files[i].mode = e->list.files[i].mode;
    }
    const redset_extras *extras = e->extras;
    return rc || !extras || !extras->last ? rc : extras->last(extras->arg, err);
}

/* Collective. The redundancy file of an earlier encode is removed before the agreement
 * that every new file waits for, so a killed job never leaves a mixture of both. */
static int encode_run(encode *e, int rc, redset_error *err)
{
    redset_transport *world = e->set->world;
    rc = encode_begin_all(e, rc, err);
    if (rc) return rc;

    rc = encode_stream(e, err);
    if (!rc) rc = encode_add_checksums(e, err);
    if (!rc) rc = redset_redundancy_file_retire(&e->streams.out, err);
    rc = world->agree_result(world, rc, 1, &e->number, err);
    if (rc) return rc;

    /* again, now with checksums */
    rc = e->list.unchecked ? 0 : encode_pass_lists(e, err);
    if (!rc) rc = encode_conclude(e, err);
    return redset_transport_agree(world, rc, err);
}

/* After a failure no redundancy file remains, not even one of an earlier encode: it would
 * describe files that may have changed since. */
static void encode_finish(encode *e, bool failed)
{
    redset_streams_done(&e->streams);
    if (failed && e->dir >= 0 && e->name[0]) beneath_unlink(e->dir, e->name, NULL);
    redset_engine_free(e->engine);
    for (int d = 0; e->lists && d <= e->shape.failures; d++)
        kvtree_delete(&e->lists[d]);
    free(e->lists);
    free(e->length);
    redset_header_free(e->header);
    redset_list_done(&e->list);
    io_close(&e->spare);
    io_close(&e->dir);
}

int redset_set_encode(redset *set, const char *folder, const kvtree *about, int count,
                      redset_file files[], const redset_extras *extras, redset_error *err)
{
    encode e = {.set = set,
                .about = about,
                .extras = extras,
                .files = files,
                .shape = redset_place_shape(&set->layout.place),
                .dir = -1,
                .spare = -1,
                .streams = {.fd = -1}};
    if (extras && extras->spare) beneath_open_folder(extras->spare, &e.spare, NULL);
    int rc = encode_run(&e, encode_prepare(&e, folder, count, err), err);
    encode_finish(&e, rc != 0);
    return rc;
}
