/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_GF_H
#define REDSET_GF_H

/* Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), as in
 * ISA-L. Addition is XOR. */

#include <stddef.h>
#include <stdint.h>

uint8_t redset_gf_multiply(uint8_t a, uint8_t b);

/* 1 / a; a is not 0. */
uint8_t redset_gf_inverse(uint8_t a);

/* The factors by which one source enters the sums of a flow. */
typedef struct redset_factors {
    int sums;          /* number of sums */
    uint8_t *each;     /* factor for each sum */
    uint8_t *multiple; /* products of each factor and all 256 elements */
    uint8_t *table;    /* table of ISA-L, if it is used */
} redset_factors;

/* Allocates up to sums factors; -ENOMEM. */
int redset_factors_init(redset_factors *factors, int sums);
void redset_factors_done(redset_factors *factors);

/* Sets the factors of the next source; sums is at most the allocated number. */
void redset_factors_set(redset_factors *factors, int sums, const uint8_t each[]);

/* sum[i] = each[i] * from, for every sum; size is at most INT_MAX. */
void redset_factors_begin(const redset_factors *factors, uint8_t *const sum[],
                          const uint8_t *from, size_t size);

/* sum[i] ^= each[i] * from. */
void redset_factors_add(const redset_factors *factors, uint8_t *const sum[],
                        const uint8_t *from, size_t size);

/* The same functions without ISA-L; public for tests. */
void redset_factors_begin_portable(const redset_factors *factors, uint8_t *const sum[],
                                   const uint8_t *from, size_t size);
void redset_factors_add_portable(const redset_factors *factors, uint8_t *const sum[],
                                 const uint8_t *from, size_t size);

#endif
