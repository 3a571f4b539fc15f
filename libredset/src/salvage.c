/* SPDX-License-Identifier: BSD-3-Clause */
/* One member of a set in a rebuild: what is left of it is looked at, read and verified;
 * what is lost is written, completed, and gets its names at the end. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include "common/others.h"
#include <errno.h>
#include <string.h>

static int rank_of(const redset_salvage *s)
{
    return s->layout->members[s->member];
}

static int read_header(redset_salvage *s, char *why)
{
    int rc = redset_header_read(s->dir, s->name, &s->header, why);
    if (rc) return rc;
    if (s->header->list[0].rank == rank_of(s) &&
        redset_layout_equal(&s->header->layout, s->layout))
        return 0;
    return err_set(why, -EBADMSG, "%s is of another set", s->name);
}

int redset_salvage_look(redset_salvage *salvage, char *err)
{
    int rc = read_header(salvage, salvage->lost);
    if (rc) return redset_salvage_lose(salvage, rc, err);
    rc = redset_header_state(salvage->header, salvage->state);
    return rc ? err_sys(err, rc, "checksums of the header of %s", salvage->name) : 0;
}

int redset_salvage_measure(redset_salvage *salvage, char *err)
{
    if (salvage->state->lost) return 0;
    int rc = redset_sizes_check(salvage->dir, &salvage->header->list[0], salvage->lost);
    return rc ? redset_salvage_lose(salvage, rc, err) : 0;
}

int redset_salvage_lose(redset_salvage *salvage, int rc, char *err)
{
    enum redset_loss loss = redset_loss_of(rc);
    if (!loss) return err_set(err, rc, "%s", salvage->lost);
    redset_shape shape = redset_shape_of(&salvage->layout->place);
    salvage->header = redset_header_free(salvage->header);
    memset(salvage->state, 0, redset_state_size(&shape));
    salvage->state->lost = loss;
    return 0;
}

int redset_salvage_read(redset_salvage *salvage, char *err)
{
    int rc = redset_streams_open(salvage->dir, salvage->name, salvage->header,
                                 &salvage->streams, salvage->lost);
    return rc ? redset_salvage_lose(salvage, rc, err) : 0;
}

int redset_salvage_write(redset_salvage *salvage, char *err)
{
    const redset_header *h = salvage->header;
    redset_streams *s = &salvage->streams;
    int rc = redset_streams_init(h, s, err);
    if (!rc)
        rc = redset_output_create(salvage->dir, &h->list[0], s->data, s->chunk,
                                  &s->logical, err);
    if (!rc)
        rc = redset_store_begin(salvage->dir, salvage->name, -1, h->tree, &salvage->store,
                                err);
    s->store = &salvage->store;
    if (rc) return rc;
    int shared = others_put(salvage->store.file.parent);
    if (shared < 0)
        return err_sys(err, shared, "look at the folder of %s", salvage->name);
    s->logical->shared = shared;
    return 0;
}

int redset_salvage_verify(redset_salvage *salvage, size_t piece, char *err)
{
    int rc = redset_streams_verify(&salvage->streams, salvage->name, salvage->header,
                                   piece, salvage->lost);
    return rc ? redset_salvage_lose(salvage, rc, err) : 0;
}

int redset_salvage_complete(redset_salvage *salvage, char *err)
{
    redset_header *h = salvage->header;
    int rc = redset_output_complete(salvage->streams.logical, err);
    h->crc = redset_streams_crc(&salvage->streams);
    if (!rc) rc = redset_store_complete(&salvage->store, h->tree, h->crc, err);
    if (rc) return rc;
    h->size = salvage->store.header;
    return 0;
}

int redset_salvage_clear_way(const redset_salvage *salvage, char *err)
{
    int rc = redset_output_clear_way(salvage->streams.logical, err);
    return rc ? rc : redset_store_clear_way(&salvage->store, err);
}

int redset_salvage_commit(redset_salvage *salvage, char *err)
{
    int rc = redset_output_commit(salvage->streams.logical, err);
    return rc ? rc : redset_store_commit(&salvage->store, err);
}

void redset_salvage_drop(redset_salvage *salvage)
{
    redset_store_abort(&salvage->store);
    redset_streams_done(&salvage->streams);
    if (salvage->state && salvage->state->lost)
        salvage->header = redset_header_free(salvage->header);
}

void redset_salvage_done(redset_salvage *salvage)
{
    redset_salvage_drop(salvage);
    salvage->header = redset_header_free(salvage->header);
}
