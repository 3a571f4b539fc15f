/* SPDX-License-Identifier: BSD-3-Clause */
#include <fstream>
#include <scr.h>
#include <string>

int main(int argc, char **argv)
{
    int rank;
    char path[SCR_MAX_FILENAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const std::string name = "hello/rank_" + std::to_string(rank) + ".txt";

    SCR_Init();
    SCR_Start_output("hello", SCR_FLAG_OUTPUT);
    SCR_Route_file(name.c_str(), path);
    std::ofstream file(path);
    file << "hello from rank " << rank << '\n';
    file.close();
    const int saved = SCR_Complete_output(file.good());
    SCR_Finalize();

    MPI_Finalize();
    return saved != SCR_SUCCESS;
}
