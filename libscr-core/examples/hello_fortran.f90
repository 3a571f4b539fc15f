! SPDX-License-Identifier: BSD-3-Clause
program hello
   use mpi
   use scr
   implicit none
   integer :: rank, unit, status, saved, ierror
   character(len=SCR_MAX_FILENAME) :: name, path
   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   write (name, '(a, i0, a)') 'hello/rank_', rank, '.txt'

   call scr_init(ierror)
   call scr_start_output('hello', SCR_FLAG_OUTPUT, ierror)
   call scr_route_file(name, path, ierror)
   open (newunit=unit, file=path, iostat=status)
   if (status == 0) write (unit, '(a, i0)', iostat=status) 'hello from rank ', rank
   if (status == 0) close (unit, iostat=status)
   call scr_complete_output(merge(1, 0, status == 0), saved)
   call scr_finalize(ierror)

   call MPI_Finalize(ierror)
   if (saved /= SCR_SUCCESS) error stop 1
end program hello
