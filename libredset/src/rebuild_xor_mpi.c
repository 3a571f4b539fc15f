/* SPDX-License-Identifier: BSD-3-Clause */
/* XOR rebuild: a pipelined reduction along the ring to the lost member (SCR Developer
 * Guide 1.2, section 2.11.3).
 *
 * Piece by piece and position by position, the lost member's right neighbour sends what
 * it has there (data, or parity at its own position), each further member adds its own,
 * and the sum that reaches the lost member is what it had at that position. */
#include "src/gf.h"
#include "src/redset_private_mpi.h"

#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <string.h>

/* What one process works with; steps count the positions of the first piece, then those
 * of the second, ... */
typedef struct worker {
    redset_pieces *pieces;
    redset_chain *chain;
    int member, members;
    uint64_t steps;
    int rc; /* the first error of this process */
    char *err;
} worker;

static size_t bytes_of(const worker *w, uint64_t step)
{
    return redset_pieces_bytes(w->pieces, w->chain->chunk, step / (uint64_t)w->members);
}

static int read_parity(const worker *w, uint64_t step, void *buf, size_t bytes)
{
    redset_chain *c = w->chain;
    uint64_t done = step / (uint64_t)w->members * w->pieces->size;
    ssize_t got = io_pread(c->parity, buf, bytes, (off_t)(c->parity_offset + done));
    if (got < 0) return err_sys(w->err, (int)got, "read redundancy data");
    if ((size_t)got < bytes)
        return err_set(w->err, -ESTALE, "redundancy file became shorter");
    c->parity_crc = crc32_add(c->parity_crc, buf, bytes);
    return 0;
}

static void read_own(worker *w, uint64_t step, void *buf, size_t bytes)
{
    int position = (int)(step % (uint64_t)w->members);
    int chunk = redset_xor_chunk_at(w->member, position);
    if (!w->rc && chunk < 0) w->rc = read_parity(w, step, buf, bytes);
    if (!w->rc && chunk >= 0)
        w->rc = redset_logical_read(w->chain->logical, chunk, buf, bytes, w->err);
    if (w->rc) memset(buf, 0, bytes);
}

static void write_own(worker *w, uint64_t step, const void *buf, size_t bytes)
{
    int position = (int)(step % (uint64_t)w->members);
    int chunk = redset_xor_chunk_at(w->member, position);
    if (w->rc) return;
    if (chunk < 0)
        w->rc = redset_store_add(w->chain->store, buf, bytes, w->err);
    else
        w->rc = redset_output_write(w->chain->logical, chunk, buf, bytes, w->err);
}

static void survive(worker *w)
{
    redset_pieces *p = w->pieces;
    bool first = p->left == w->chain->root;
    for (uint64_t step = 0; step < w->steps; step++) {
        int buffer = (int)(step % 2);
        size_t bytes = bytes_of(w, step);
        if (!first) redset_pieces_receive(p, buffer, bytes);
        redset_pieces_sent(p, buffer); /* two steps ago */
        read_own(w, step, p->out[buffer], bytes);
        if (!first) {
            redset_pieces_received(p, buffer);
            redset_xor(p->out[buffer], p->in[buffer], bytes);
        }
        redset_pieces_send(p, buffer, bytes);
    }
    redset_pieces_sent(p, 0);
    redset_pieces_sent(p, 1);
}

static void restore(worker *w)
{
    redset_pieces *p = w->pieces;
    if (w->steps > 0) redset_pieces_receive(p, 0, bytes_of(w, 0));
    for (uint64_t step = 0; step < w->steps; step++) {
        int buffer = (int)(step % 2);
        redset_pieces_received(p, buffer);
        if (step + 1 < w->steps)
            redset_pieces_receive(p, 1 - buffer, bytes_of(w, step + 1));
        write_own(w, step, p->in[buffer], bytes_of(w, step));
    }
}

int redset_rebuild_xor(const redset *set, redset_pieces *pieces, redset_chain *chain,
                       char *err)
{
    const redset_place *place = &set->layout.place;
    worker w = {pieces, chain, place->member, place->members, 0, 0, err};
    w.steps = redset_pieces_count(pieces, chain->chunk) * (uint64_t)place->members;
    if (place->member == chain->root)
        restore(&w);
    else
        survive(&w);
    return w.rc;
}
