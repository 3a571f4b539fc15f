/* SPDX-License-Identifier: BSD-3-Clause */
/* One member of a set while the set is verified or rebuilt. */
#include "src/set/member_recovery.h"

#include "common/errtext.h"
#include <errno.h>
#include <string.h>

static int member_read_header(redset_member *m, redset_error *why)
{
    int rc = redset_header_read(m->dir, m->name, &m->header, why);
    if (rc) return rc;
    if (m->header->list[0].rank == m->layout->members[m->member] &&
        redset_layout_is_equal(&m->header->layout, m->layout))
        return 0;
    return err_set(why, -EBADMSG, "%s is of another set", m->name);
}

int redset_member_inspect(redset_member *member, redset_error *err)
{
    int rc = member_read_header(member, &member->reason);
    if (rc) return redset_member_lose(member, rc, err);
    rc = redset_state_set(member->state, member->header);
    return rc ? err_sys(err, rc, "checksums of the header of %s", member->name) : 0;
}

static int member_compare_sizes(const redset_member *m, redset_error *why)
{
    const redset_list *list = &m->header->list[0];
    for (int i = 0; i < list->count; i++) {
        struct stat st;
        const redset_file *file = &list->files[i];
        int rc = beneath_stat(m->dir, file->name, &st, why);
        if (rc) return rc;
        if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != file->size)
            return err_set(why, -EBADMSG, "%s is not a file of %llu bytes", file->name,
                           (unsigned long long)file->size);
    }
    return 0;
}

int redset_member_check_sizes(redset_member *member, redset_error *err)
{
    if (member->state->lost) return 0;
    int rc = member_compare_sizes(member, &member->reason);
    return rc ? redset_member_lose(member, rc, err) : 0;
}

int redset_member_lose(redset_member *member, int rc, redset_error *err)
{
    enum redset_loss loss = redset_loss_of(rc);
    if (!loss) return err_set(err, rc, "%s", member->reason.text);
    redset_shape shape = redset_place_shape(&member->layout->place);
    member->header = redset_header_free(member->header);
    memset(member->state, 0, redset_state_size(&shape));
    member->state->lost = loss;
    return 0;
}

int redset_member_open(redset_member *member, redset_error *err)
{
    if (member->state->lost) return 0;
    int rc = redset_streams_open(member->dir, member->name, member->header,
                                 &member->streams, &member->reason);
    if (rc) return redset_member_lose(member, rc, err);
    if (member->open_files < REDSET_OPEN_FILES)
        member->streams.files->open_files = member->open_files;
    redset_streams_set_meter(&member->streams, member->meter);
    return 0;
}

int redset_member_create(redset_member *member, redset_error *err)
{
    int rc = redset_streams_create(member->dir, member->name, member->header,
                                   &member->streams, err);
    if (rc) return rc;
    member->streams.files->out.shared = member->shared;
    redset_streams_set_meter(&member->streams, member->meter);
    return 0;
}

int redset_member_verify(redset_member *member, redset_error *err)
{
    if (member->state->lost) return 0;
    int rc = member->streams.files ? 0 : redset_member_open(member, err);
    if (rc || member->state->lost) return rc;
    rc = redset_streams_verify(&member->streams, member->name, member->header,
                               member->piece, &member->reason);
    redset_streams_done(&member->streams);
    return rc ? redset_member_lose(member, rc, err) : 0;
}

int redset_member_complete(redset_member *member, redset_error *err)
{
    return redset_streams_complete(&member->streams, member->header, err);
}

int redset_member_clear_way(redset_member *member, redset_error *err)
{
    return redset_streams_clear_way(&member->streams, err);
}

int redset_member_commit(redset_member *member, redset_error *err)
{
    return redset_streams_commit(&member->streams, err);
}

void redset_member_reset(redset_member *member)
{
    redset_streams_done(&member->streams);
    if (member->state && member->state->lost)
        member->header = redset_header_free(member->header);
}

void redset_member_done(redset_member *member)
{
    redset_member_reset(member);
    member->header = redset_header_free(member->header);
}
