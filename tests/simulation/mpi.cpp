/* SPDX-License-Identifier: BSD-3-Clause */
/* What SMPI lacks: matched probes. One thread of a rank receives at a time in the
 * product, so that a message that was probed is still the first to match. */
#include <smpi/smpi.h>

namespace
{
struct Matched {
    int source, tag;
    MPI_Comm comm;
};

MPI_Message keep(const MPI_Status &status, MPI_Comm comm)
{
    return reinterpret_cast<MPI_Message>(
        new Matched{status.MPI_SOURCE, status.MPI_TAG, comm});
}
} // namespace

extern "C" {

int simulated_MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag,
                          MPI_Message *message, MPI_Status *status)
{
    MPI_Status found;
    int rc = MPI_Iprobe(source, tag, comm, flag, &found);
    if (rc || !*flag) return rc;
    *message = keep(found, comm);
    if (status != MPI_STATUS_IGNORE) *status = found;
    return rc;
}

int simulated_MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message,
                         MPI_Status *status)
{
    MPI_Status found;
    int rc = MPI_Probe(source, tag, comm, &found);
    if (rc) return rc;
    *message = keep(found, comm);
    if (status != MPI_STATUS_IGNORE) *status = found;
    return rc;
}

int simulated_MPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message,
                        MPI_Status *status)
{
    auto *m = reinterpret_cast<Matched *>(*message);
    int rc = MPI_Recv(buf, count, type, m->source, m->tag, m->comm, status);
    delete m;
    *message = MPI_MESSAGE_NULL;
    return rc;
}

} // extern "C"
