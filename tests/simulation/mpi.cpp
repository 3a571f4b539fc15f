/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that SMPI lacks: matched probes. In the product only one thread of a rank
 * receives at a time, so a probed message is still the first to match. Calls that SMPI
 * has are counted and passed on. */
#include "engine.h"

#include <cstring>
#include <smpi/smpi.h>
#include <vector>

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
sim::Traffic &traffic()
{
    sim::Process &p = sim::Machine::self();
    if (p.delay > 0)
        simgrid::s4u::this_actor::sleep_for(p.delay * p.machine->random.real());
    return p.traffic;
}

void count_message(int count, MPI_Datatype type)
{
    int size;
    MPI_Type_size(type, &size);
    sim::Traffic &t = traffic();
    t.messages++;
    t.bytes += static_cast<uint64_t>(count) * static_cast<uint64_t>(size);
}

/* Computes the sum over the first ranks; first is their number. SMPI's own scans send a
 * message from each rank to each rank, which takes P^3 steps of the simulation. */
int scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
         MPI_Comm comm, int first)
{
    int ranks, size;
    MPI_Comm_size(comm, &ranks);
    MPI_Type_size(type, &size);
    const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(size);
    std::vector<char> all(static_cast<size_t>(ranks) * bytes);
    int rc = MPI_Allgather(in, count, type, all.data(), count, type, comm);
    for (int i = 1; i < first; i++)
        MPI_Reduce_local(&all[static_cast<size_t>(i - 1) * bytes],
                         &all[static_cast<size_t>(i) * bytes], count, type, op);
    if (first > 0) memcpy(out, &all[static_cast<size_t>(first - 1) * bytes], bytes);
    return rc;
}
} // namespace

/* A collective call that is counted and passed on. */
#define COLLECTIVE(name, parameters, arguments)                                          \
    int simulated_##name parameters                                                      \
    {                                                                                    \
        traffic().collectives++;                                                         \
        return name arguments;                                                           \
    }
#define SEND(name, parameters, arguments)                                                \
    int simulated_##name parameters                                                      \
    {                                                                                    \
        count_message(count, type);                                                      \
        return name arguments;                                                           \
    }

extern "C" {

COLLECTIVE(MPI_Barrier, (MPI_Comm comm), (comm))
COLLECTIVE(MPI_Bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (data, count, type, root, comm))
COLLECTIVE(MPI_Allreduce,
           (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (in, out, count, type, op, comm))
int simulated_MPI_Exscan(const void *in, void *out, int count, MPI_Datatype type,
                         MPI_Op op, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    traffic().collectives++;
    return scan(in, out, count, type, op, comm, rank);
}

int simulated_MPI_Scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    traffic().collectives++;
    return scan(in, out, count, type, op, comm, rank + 1);
}

COLLECTIVE(MPI_Allgather,
           (const void *in, int count, MPI_Datatype type, void *out, int counts,
            MPI_Datatype types, MPI_Comm comm),
           (in, count, type, out, counts, types, comm))
COLLECTIVE(MPI_Allgatherv,
           (const void *in, int count, MPI_Datatype type, void *out, const int *counts,
            const int *places, MPI_Datatype types, MPI_Comm comm),
           (in, count, type, out, counts, places, types, comm))
COLLECTIVE(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *copy), (comm, copy))
COLLECTIVE(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *part),
           (comm, color, key, part))
COLLECTIVE(MPI_Comm_split_type,
           (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part),
           (comm, type, key, info, part))
SEND(MPI_Send,
     (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
     (data, count, type, to, tag, comm))
SEND(MPI_Ssend,
     (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
     (data, count, type, to, tag, comm))
SEND(MPI_Isend,
     (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
      MPI_Request *request),
     (data, count, type, to, tag, comm, request))
SEND(MPI_Issend,
     (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
      MPI_Request *request),
     (data, count, type, to, tag, comm, request))
SEND(MPI_Sendrecv,
     (const void *data, int count, MPI_Datatype type, int to, int tag, void *out,
      int most, MPI_Datatype of, int from, int with, MPI_Comm comm, MPI_Status *status),
     (data, count, type, to, tag, out, most, of, from, with, comm, status))

/* SMPI's own MPI_Ibarrier completes when rank 0 has entered it; this one completes when
 * all ranks have. With many ranks it would be slow, and is not needed: no message is late
 * there. */
int simulated_MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    static char out, in[32];
    int ranks;
    MPI_Comm_size(comm, &ranks);
    if (ranks > static_cast<int>(sizeof in)) return MPI_Ibarrier(comm, request);
    return MPI_Iallgather(&out, 1, MPI_CHAR, in, 1, MPI_CHAR, comm, request);
}

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
