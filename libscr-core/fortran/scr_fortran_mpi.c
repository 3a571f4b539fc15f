/* SPDX-License-Identifier: BSD-3-Clause */
/* What Fortran cannot do by itself: Fortran's handle of a communicator becomes C's.
 * Called by scr.f90. */
#include <scr.h>

int scr_fortran_init_comm(int comm) __attribute__((visibility("hidden")));

/* An MPI may end the program if it is asked for a handle before MPI_Init or after
 * MPI_Finalize; SCR_Init_comm returns an error then. */
int scr_fortran_init_comm(int comm)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return SCR_Init_comm(up && !down ? MPI_Comm_f2c((MPI_Fint)comm) : MPI_COMM_NULL);
}
