/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves one file to another directory and prints its checksum. */
#include <axl/axl.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *source = argc > 2 ? argv[1] : argv[0];
    const char *destination = argc > 2 ? argv[2] : "axl-example/new/copy";
    axl_error err = {""};
    axl_options options = {.flags = AXL_CHECKSUM | AXL_KEEP_MODE};
    axl_transfer *transfer = NULL;
    axl_file file = {0};

    int rc = axl_create("pthread", &options, &transfer, &err);
    if (rc == 0) rc = axl_add(transfer, source, destination, &err);
    if (rc == 0) rc = axl_dispatch(transfer, &err);
    if (rc == 0) rc = axl_wait(transfer, &err);
    if (rc == 0) rc = axl_get(transfer, 0, &file);
    if (rc == 0)
        printf("%s: %" PRIu64 " bytes, CRC32 0x%08" PRIx32 "\n", file.destination,
               file.size, file.crc);
    if (rc != 0) fprintf(stderr, "example_axl: %s\n", err.text);
    axl_free(transfer);
    return rc != 0;
}
