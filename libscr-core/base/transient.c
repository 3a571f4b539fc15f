/* SPDX-License-Identifier: BSD-3-Clause */
/* Transient errors; see base/transient.h. */
#include "base/transient.h"

#include <errno.h>
#include <stddef.h>

bool scr_is_transient(int error)
{
    static const int transient[] = {EIO,     ENOMEM,    EMFILE,         ENFILE,
                                    EINTR,   EAGAIN,    EBUSY,          ESTALE,
                                    ENOBUFS, ETIMEDOUT, EPROTONOSUPPORT};
    for (size_t i = 0; i < sizeof transient / sizeof *transient; i++)
        if (error == -transient[i]) return true;
    return false;
}
