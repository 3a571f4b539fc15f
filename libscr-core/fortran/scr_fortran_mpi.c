/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the Fortran handle of a communicator to a C handle, which Fortran cannot do
 * itself. Called by scr.f90. */
#include <scr.h>

int scr_fortran_init_comm(int comm) __attribute__((visibility("hidden")));

/* Some MPIs end the program if MPI_Comm_f2c is called before MPI_Init or after
 * MPI_Finalize. In this case SCR_Init_comm returns an error. */
int scr_fortran_init_comm(int comm)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return SCR_Init_comm(up && !down ? MPI_Comm_f2c((MPI_Fint)comm) : MPI_COMM_NULL);
}
