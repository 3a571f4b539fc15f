/* SPDX-License-Identifier: BSD-3-Clause */
/* heat in C++17: how an MPI program in C++ uses SCR, by the example of heat diffusion in
 * a square plate, as in heat.c.
 *
 *     mpiexec -n 4 ./heat_cxx [points per side [time steps
 *         [steps per checkpoint [file]]]]
 *
 * Each rank owns a strip of rows and one more row on both sides, which it receives from
 * its neighbors before each step (Jacobi's method). All code that concerns SCR is marked
 * "SCR:". When the program is started again after a failure, it continues from its newest
 * checkpoint, and its result is the same to the last bit. */
#include <array>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <mpi.h>
#include <optional>
#include <scr.h>
#include <string>
#include <utility>
#include <vector>

namespace
{

/* ---- the simulation, without SCR ---- */

class plate
{
  public:
    explicit plate(int points) : side(points)
    {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        first = static_cast<int>(static_cast<long>(side) * rank_ / ranks);
        rows = static_cast<int>(static_cast<long>(side) * (rank_ + 1) / ranks) - first;
        reset();
    }

    int rank() const
    {
        return rank_;
    }

    void reset()
    {
        now.assign(row(rows + 2), 0.0);
        if (rank_ == 0) now.assign(row(1), 100.0), now.resize(row(rows + 2), 0.0);
        next = now; /* the northern edge is kept hot */
    }

    void advance()
    {
        const int north = rank_ > 0 ? rank_ - 1 : MPI_PROC_NULL;
        const int south = rank_ < ranks - 1 ? rank_ + 1 : MPI_PROC_NULL;
        swap_rows(1, north, rows + 1, south);
        swap_rows(rows, south, 0, north);
        for (int i = 1; i <= rows; i++)
            for (std::size_t j = row(i) + 1; j + 1 < row(i + 1); j++)
                next[j] =
                    0.25 * (now[j - row(1)] + now[j + row(1)] + now[j - 1] + now[j + 1]);
        std::swap(now, next);
    }

    /* Writes the plate into one file; all ranks take part. */
    bool save(const std::string &path) const
    {
        MPI_File file;
        if (MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                          MPI_INFO_NULL, &file) != MPI_SUCCESS)
            return false;
        std::vector<double> inner;
        for (int i = 1; i <= rows; i++)
            inner.insert(inner.end(), now.begin() + offset(i) + 1,
                         now.begin() + offset(i + 1) - 1);
        const MPI_Offset at = static_cast<MPI_Offset>(first) * side * 8;
        const int rc =
            MPI_File_write_at_all(file, at, inner.data(), static_cast<int>(inner.size()),
                                  MPI_DOUBLE, MPI_STATUS_IGNORE);
        return MPI_File_close(&file) == MPI_SUCCESS && rc == MPI_SUCCESS;
    }

    std::vector<double> &field()
    {
        return now;
    }

  private:
    int side, rank_ = 0, ranks = 1, first = 0, rows = 0;
    std::vector<double> now, next; /* (rows + 2) x (side + 2) points */

    std::size_t row(int i) const
    {
        return static_cast<std::size_t>(i) * static_cast<std::size_t>(side + 2);
    }

    std::ptrdiff_t offset(int i) const
    {
        return static_cast<std::ptrdiff_t>(row(i));
    }

    void swap_rows(int mine, int to, int other, int from)
    {
        MPI_Sendrecv(&now[row(mine)], side + 2, MPI_DOUBLE, to, 0, &now[row(other)],
                     side + 2, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
};

/* Writes (reads) the step and the rows to (from) one file per rank. */
bool write_state(const std::string &path, plate &p, int step)
{
    std::ofstream file(path, std::ios::binary);
    const auto &field = p.field();
    file.write(reinterpret_cast<const char *>(&step), sizeof step);
    file.write(reinterpret_cast<const char *>(field.data()),
               static_cast<std::streamsize>(field.size() * sizeof field[0]));
    file.close();
    return file.good();
}

bool read_state(const std::string &path, plate &p, int &step)
{
    std::ifstream file(path, std::ios::binary);
    auto &field = p.field();
    file.read(reinterpret_cast<char *>(&step), sizeof step);
    file.read(reinterpret_cast<char *>(field.data()),
              static_cast<std::streamsize>(field.size() * sizeof field[0]));
    return file.good();
}

/* ---- checkpoint and restart ---- */

/* SCR: returns where the file "<dataset>/rank_<rank>" must be written or read. */
std::optional<std::string> route(const std::string &dataset, int rank)
{
    std::array<char, SCR_MAX_FILENAME> path{};
    const std::string name = dataset + "/rank_" + std::to_string(rank);
    if (SCR_Route_file(name.c_str(), path.data()) != SCR_SUCCESS) return std::nullopt;
    return path.data();
}

bool checkpoint(plate &p, int step)
{
    const std::string dataset = "ckpt." + std::to_string(step);
    /* SCR: open a dataset, ... */
    if (SCR_Start_output(dataset.c_str(), SCR_FLAG_CHECKPOINT) != SCR_SUCCESS)
        return false;
    const auto path = route(dataset, p.rank());
    const bool valid = path && write_state(*path, p, step);
    /* SCR: ... and report success. The checkpoint is safe when all ranks get
     * SCR_SUCCESS. */
    return SCR_Complete_output(valid) == SCR_SUCCESS;
}

/* Returns the step to continue from: that of the newest checkpoint that can be read, or
 * 0. */
int restart(plate &p)
{
    for (;;) {
        int have = 0, step = 0;
        std::array<char, SCR_MAX_FILENAME> dataset{};
        /* SCR: is there a checkpoint? If one cannot be read, SCR offers older ones. */
        SCR_Have_restart(&have, dataset.data());
        if (!have) return 0;
        SCR_Start_restart(dataset.data());
        const auto path = route(dataset.data(), p.rank());
        const bool valid = path && read_state(*path, p, step);
        if (SCR_Complete_restart(valid) == SCR_SUCCESS) {
            if (p.rank() == 0)
                std::cout << "heat: restarted from " << dataset.data() << ", at step "
                          << step << std::endl;
            return step;
        }
        p.reset(); /* discard the data that was read */
    }
}

bool run(int side, int steps, const std::string &result)
{
    plate p(side);
    int step = restart(p), stop = 0;
    while (step < steps && !stop) {
        int need = 0;
        p.advance();
        step++;
        /* SCR: time for a checkpoint? Should the run end early? */
        SCR_Need_checkpoint(&need);
        if (!need) continue;
        const bool ok = checkpoint(p, step);
        if (p.rank() == 0)
            std::cout << "heat: step " << step << ": checkpoint "
                      << (ok ? "done" : "failed") << std::endl;
        SCR_Should_exit(&stop);
    }
    return result.empty() || step < steps || p.save(result);
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto number = [&](std::size_t which, int otherwise) {
        return given.size() > which ? std::stoi(given[which]) : otherwise;
    };
    /* SCR: SCR_Need_checkpoint sets the flag at every n-th call. Then begin. */
    SCR_Configf("SCR_CHECKPOINT_INTERVAL=%d", number(2, 20));
    SCR_Init();
    const bool ok =
        run(number(0, 512), number(1, 200), given.size() > 3 ? given[3] : std::string());
    /* SCR: end. Copies the newest checkpoint to the prefix directory if it is not there
     * yet. */
    SCR_Finalize();
    MPI_Finalize();
    return ok ? 0 : 1;
}
