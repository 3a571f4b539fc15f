/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams: the parts of a redundancy file, written and read in turns. */
#include "src/files/streams.h"

#include "common/beneath.h"
#include "scratch.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <zlib.h>

#include <cmocka.h>

enum { PARTS = 3, LENGTH = 100, STEP = 30 };

static const redset_header description = {
    .shape = {REDSET_RS, 5, PARTS}, .chunk = LENGTH, .data = PARTS * LENGTH};

/* All parts in turns, the last step of each being shorter. */
static int pass(redset_streams *s, unsigned char bytes[PARTS][LENGTH], bool writing,
                redset_error *err)
{
    int rc = 0;
    for (size_t done = 0; done < LENGTH; done += STEP)
        for (int i = PARTS - 1; i >= 0 && !rc; i--) {
            size_t n = LENGTH - done < STEP ? LENGTH - done : STEP;
            rc = writing ? redset_streams_write(s, s->data + i, bytes[i] + done, n, err)
                         : redset_streams_read(s, s->data + i, bytes[i] + done, n, err);
        }
    return rc;
}

static void parts_are_one_behind_the_other(void **state)
{
    char folder[64];
    redset_error err;
    unsigned char bytes[PARTS][LENGTH], back[PARTS][LENGTH];
    int dir;
    size_t size;
    redset_streams out, in;
    kvtree *header = kvtree_new();
    scratch_make(folder);
    scratch_bytes(bytes[0], sizeof bytes, 3);
    uint32_t crc = (uint32_t)crc32_z(0, bytes[0], sizeof bytes);
    assert_int_equal(beneath_open_folder(folder, &dir, &err), 0);
    kvtree_set_kv(header, "CRC", "0x00000000");

    assert_int_equal(redset_streams_init(&description, &out, &err), 0);
    assert_int_equal(
        redset_redundancy_file_begin(dir, "file", -1, header, &out.out, &err), 0);
    assert_int_equal(pass(&out, bytes, true, &err), 0);
    assert_int_equal(redset_streams_crc(&out), crc);
    assert_int_equal(redset_redundancy_file_complete(&out.out, header, crc, &err), 0);
    assert_int_equal(redset_redundancy_file_commit(&out.out, &err), 0);
    uint64_t start = out.out.header;
    unsigned char *file = scratch_read(folder, "file", &size);
    assert_int_equal(size, start + sizeof bytes);
    assert_memory_equal(file + start, bytes, sizeof bytes);
    free(file);

    assert_int_equal(redset_streams_init(&description, &in, &err), 0);
    assert_int_equal(beneath_open(dir, "file", O_RDONLY, 0, &in.fd, &err), 0);
    in.start = start;
    assert_int_equal(pass(&in, back, false, &err), 0);
    assert_memory_equal(back, bytes, sizeof bytes);
    assert_int_equal(redset_streams_crc(&in), crc);
    assert_int_equal(redset_streams_read(&in, in.data + PARTS - 1, back, 1, &err),
                     -ESTALE);

    redset_streams_done(&in);
    redset_streams_done(&out);
    kvtree_delete(&header);
    close(dir);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_one_behind_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
