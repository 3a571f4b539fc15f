/* SPDX-License-Identifier: BSD-3-Clause */
/* The XOR of two buffers, which is all the arithmetic that this scheme needs. Blocks of
 * fixed length let the compiler use the machine's vectors at any level of optimisation.
 */
#include "src/redset_private.h"

#include <string.h>

enum { WORDS = 8 };

void redset_xor(void *restrict into, const void *restrict from, size_t size)
{
    unsigned char *a = into;
    const unsigned char *b = from;
    for (; size >= WORDS * sizeof(uint64_t); size -= WORDS * sizeof(uint64_t)) {
        uint64_t x[WORDS], y[WORDS];
        memcpy(x, a, sizeof x);
        memcpy(y, b, sizeof y);
        for (int i = 0; i < WORDS; i++)
            x[i] ^= y[i];
        memcpy(a, x, sizeof x);
        a += sizeof x;
        b += sizeof y;
    }
    while (size-- > 0)
        *a++ ^= *b++;
}
