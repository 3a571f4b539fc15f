/* SPDX-License-Identifier: BSD-3-Clause */
/* The private communicator of the collective functions, an attribute of the application's
 * communicator. The key under which MPI keeps attributes is the only static variable of
 * the library. */
#include "src/kvtree_mpi_private.h"

#include "common/agree_mpi.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define EXCHANGE_TAG 1

static _Atomic int keyval = MPI_KEYVAL_INVALID;

static void channel_free(struct channel *ch)
{
    if (!ch) return;
    if (ch->comm != MPI_COMM_NULL) MPI_Comm_free(&ch->comm);
    free(ch);
}

/* Called by MPI when comm is freed. */
static int channel_on_free(MPI_Comm comm, int key, void *value, void *extra)
{
    channel_free(value);
    return MPI_SUCCESS;
}

/* Returns the key for attributes, created on first use; MPI_KEYVAL_INVALID if MPI has
 * none. Two threads may call this at once, each with its own communicator: both then use
 * the key of one of them. */
static int channel_keyval(void)
{
    int fresh, known = atomic_load(&keyval);
    if (known != MPI_KEYVAL_INVALID) return known;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, channel_on_free, &fresh, NULL) !=
        MPI_SUCCESS)
        return MPI_KEYVAL_INVALID;
    if (atomic_compare_exchange_strong(&keyval, &known, fresh)) return fresh;
    MPI_Comm_free_keyval(&fresh);
    return known;
}

/* Collective; returns this rank's own result. A duplicate carries no messages of the
 * application. The library reports errors on the duplicate; they must not end the
 * program. */
static int channel_new(MPI_Comm comm, struct channel **made)
{
    struct channel *ch = malloc(sizeof *ch);
    MPI_Comm own;
    const int duplicated = MPI_Comm_dup(comm, &own) == MPI_SUCCESS;
    if (duplicated && ch) {
        MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
        *ch = (struct channel){own, EXCHANGE_TAG, MESSAGE_LIMIT, NULL};
        *made = ch;
        return 0;
    }
    free(ch);
    if (duplicated) MPI_Comm_free(&own);
    return duplicated ? -ENOMEM : -EIO;
}

int channel_agree(const struct channel *ch, int code)
{
    int worst = code;
    if (MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, ch->comm) != MPI_SUCCESS)
        return -EIO;
    return worst;
}

static int channel_keep(MPI_Comm comm, struct channel *ch)
{
    int key = channel_keyval();
    if (key == MPI_KEYVAL_INVALID) return -EIO;
    return MPI_Comm_set_attr(comm, key, ch) == MPI_SUCCESS ? 0 : -EIO;
}

/* All ranks agree over comm on whether each has a channel: a rank without a duplicate has
 * no other communicator. */
static int channel_open(MPI_Comm comm, struct channel **opened)
{
    struct channel *ch = NULL;
    int rc = channel_new(comm, &ch);
    if (!rc && (rc = channel_keep(comm, ch)) != 0) channel_free(ch);
    int agreed = channel_agree(&(struct channel){.comm = comm}, rc);
    if (!agreed)
        *opened = ch;
    else if (!rc)
        MPI_Comm_delete_attr(comm, keyval); /* channel_on_free frees it */
    return agreed;
}

int channel_of(MPI_Comm comm, const struct channel **channel)
{
    int found = 0, key = keyval;
    struct channel *ch = NULL;
    if (agree_possible(comm, NULL) != 0) return -EINVAL;
    if (key != MPI_KEYVAL_INVALID) MPI_Comm_get_attr(comm, key, &ch, &found);
    int rc = found ? 0 : channel_open(comm, &ch);
    if (!rc) *channel = ch;
    return rc;
}
