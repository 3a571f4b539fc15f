/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_TESTS_CONTAINER_H
#define AXL_TESTS_CONTAINER_H

/* A file that parts are written into, and its expected content. */

#include "scratch.h"

#include <axl/axl.h>

enum { IMAGE_MAX = 4800000, OLD = 0xEE };

/* Expected size and bytes of s->destination. */
typedef struct image {
    size_t size;
    unsigned char bytes[IMAGE_MAX];
} image;

/* Creates the container, filled with bytes OLD. */
static inline image *make_container(scratch *s, size_t size)
{
    image *shall = malloc(sizeof *shall);
    assert_non_null(shall);
    memset(shall->bytes, OLD, size);
    memset(shall->bytes + size, 0, IMAGE_MAX - size);
    shall->size = size;
    snprintf(s->destination, sizeof s->destination, "%s/container", s->folder);
    scratch_write(s->destination, shall->bytes, size);
    return shall;
}

/* Compares the container with the image, and frees the image. */
static inline void expect_image(const scratch *s, image *shall)
{
    scratch_expect(s->destination, shall->bytes, shall->size);
    free(shall);
}

/* Adds expected bytes to the image. */
static inline void paint(image *shall, uint64_t to, const void *bytes, size_t size)
{
    assert_true(to + size <= IMAGE_MAX);
    memcpy(shall->bytes + to, bytes, size);
    if (size && to + size > shall->size) shall->size = to + size;
}

static inline axl_part part_of(const scratch *s, uint64_t from, uint64_t to,
                               uint64_t length)
{
    return (axl_part){.source = s->source,
                      .source_offset = from,
                      .destination = s->destination,
                      .destination_offset = to,
                      .length = length};
}

static inline void add(axl_transfer *t, axl_part part)
{
    axl_error err = {""};
    if (axl_add_part(t, &part, &err) != 0) fail_msg("%s", err.text);
}

static inline void finish(axl_transfer *t)
{
    axl_error err = {""};
    int rc = axl_dispatch(t, &err);
    if (!rc) rc = axl_wait(t, &err);
    if (rc) fail_msg("%s", err.text);
    axl_progress p;
    assert_int_equal(axl_progress_get(t, &p), 0);
    assert_true(p.files_done == p.files && p.bytes_done == p.bytes);
}

static inline unsigned char *write_source(const scratch *s, size_t size)
{
    unsigned char *bytes = scratch_bytes(size);
    scratch_write(s->source, bytes, size);
    return bytes;
}

/* Creates a transfer by any method; TEST_TRANSFER is the path of scr_transfer. */
static inline axl_transfer *create_transfer(const scratch *s, const char *method,
                                            unsigned flags)
{
    static const char program[] = TEST_TRANSFER;
    static char path[128];
    axl_error err = {""};
    axl_transfer *t = NULL;
    snprintf(path, sizeof path, "%s/state", s->folder);
    const axl_options options = {.flags = flags,
                                 .workers = 3,
                                 .daemon = program,
                                 .state = strcmp(method, "daemon") == 0 ? path : NULL};
    assert_int_equal(axl_create(method, &options, &t, &err), 0);
    return t;
}

#endif
