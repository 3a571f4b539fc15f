/* SPDX-License-Identifier: BSD-3-Clause */
/* What Fortran cannot do by itself: Fortran's handle of a communicator becomes C's.
 * Called by scr.f90. */
#include <scr.h>

int scr_fortran_init_comm(int comm) __attribute__((visibility("hidden")));

int scr_fortran_init_comm(int comm)
{
    return SCR_Init_comm(MPI_Comm_f2c((MPI_Fint)comm));
}
