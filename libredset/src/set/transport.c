/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all transports. */
#include "src/set/transport.h"

int redset_transport_compare(redset_transport *t, int code,
                             const int64_t values[REDSET_VALUES], bool *equal,
                             redset_error *err)
{
    enum { N = REDSET_VALUES };
    int64_t most[2 * N + 1];
    for (int i = 0; i < N; i++) {
        most[i] = values ? values[i] : INT64_MIN;
        most[N + i] = values ? ~values[i] : INT64_MIN; /* unlike -, never overflows */
    }
    most[2 * N] = code != 0;
    int rc = t->greatest(t, 2 * N + 1, most, err);
    if (rc) return rc;
    if (most[2 * N]) return redset_transport_agree(t, code, err);
    *equal = true;
    for (int i = 0; i < N; i++)
        if (most[i] != INT64_MIN && most[i] != ~most[N + i]) *equal = false;
    return 0;
}
