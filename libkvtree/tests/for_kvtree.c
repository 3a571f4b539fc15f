/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for KVTree as its users write it: for three processes, with KVTree's headers
 * in the include path, a variable with the name of the type, and headers of other
 * libraries that declare the type again. */
#include <kvtree.h>
#include <kvtree_mpi.h>
#include <kvtree_util.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
typedef struct kvtree_struct kvtree;

static int failed;

static void expect(int is_good, const char *what)
{
    if (is_good) return;
    failed = 1;
    printf("%s failed\n", what);
}

static void exchange(int rank, int ranks)
{
    int value = 0, from = (rank + ranks - 1) % ranks;
    uLong crc = 0; /* of zlib.h */
    char key[16];
    kvtree *send = kvtree_new(), *recv = kvtree_new(), *message = kvtree_new();
    kvtree_util_set_int(message, "VALUE", rank);
    expect(kvtree_exchange_sendq(send, (rank + 1) % ranks, message) == KVTREE_SUCCESS,
           "sendq");
    expect(kvtree_exchange_direction(send, recv, MPI_COMM_WORLD, KVTREE_EXCHANGE_LEFT) ==
               KVTREE_SUCCESS,
           "exchange");
    snprintf(key, sizeof key, "%d", from);
    kvtree_util_get_int(kvtree_get(recv, key), "VALUE", &value);
    expect(value == from, "value of the exchange");
    kvtree_util_set_crc32(message, "CRC", 0x1234);
    kvtree_util_get_crc32(message, "CRC", &crc);
    expect(crc == 0x1234, "checksum");
    kvtree_delete(&message);
    kvtree_delete(&recv);
    kvtree_delete(&send);
}

static void files(int rank)
{
    kvtree *kvtree = kvtree_new();
    char *text = NULL;
    kvtree_util_set_str(kvtree, "NAME", rank ? "other" : "first");
    expect(kvtree_write_gather("PREFIX", kvtree, MPI_COMM_WORLD) == KVTREE_SUCCESS,
           "write_gather");
    kvtree_unset_all(kvtree);
    expect(kvtree_read_scatter("PREFIX", kvtree, MPI_COMM_WORLD) == KVTREE_SUCCESS,
           "read_scatter");
    expect(kvtree_bcast(kvtree, 0, MPI_COMM_WORLD) == KVTREE_SUCCESS, "bcast");
    expect(kvtree_size(kvtree_get(kvtree, "NAME")) == 1, "bcast into another tree");
    kvtree_util_get_str(kvtree, "NAME", &text);
    expect(text && strcmp(text, "first") == 0, "name");
    if (rank == 0) kvtree_print_mode(kvtree, 4, KVTREE_PRINT_KEYVAL);
    kvtree_delete(&kvtree);
    expect(kvtree == NULL, "delete");
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    exchange(rank, ranks);
    files(rank);
    MPI_Finalize();
    return failed;
}
