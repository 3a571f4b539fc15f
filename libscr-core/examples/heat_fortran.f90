! SPDX-License-Identifier: BSD-3-Clause
!> heat in Fortran: how an MPI program in Fortran uses SCR, by the example of heat
!! diffusion in a square plate, as in heat.c.
!!
!!     mpiexec -n 4 ./heat_fortran [points per side [time steps
!!         [steps per checkpoint [file]]]]
!!
!! Each rank owns a strip of columns and one more column on both sides, which it receives
!! from its neighbors before each step (Jacobi's method). All code that concerns SCR is
!! marked "SCR:". When the program is started again after a failure, it continues from its
!! newest checkpoint, and its result is the same to the last bit.
program heat_fortran
   use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
   use mpi
   use scr
   implicit none
   real(real64), allocatable :: now(:, :), next(:, :)
   integer :: side, steps, every, rank, ranks, first, columns, step, need, stop_now, ierror
   character(len=SCR_MAX_FILENAME) :: result, text
   logical :: ok

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   side = number(1, 512)
   steps = number(2, 200)
   every = number(3, 20)
   call get_command_argument(4, result)

   ! SCR: scr_need_checkpoint below sets the flag at every "every"-th call. Then begin.
   write (text, '(a, i0)') 'SCR_CHECKPOINT_INTERVAL=', every
   call scr_config(text, ierror)
   call scr_init(ierror)

   call make_plate()
   step = restart()
   stop_now = 0
   do while (step < steps .and. stop_now == 0)
      call advance()
      step = step + 1
      ! SCR: time for a checkpoint? Should the run end early?
      call scr_need_checkpoint(need, ierror)
      if (need == 1) then
         ok = checkpoint(step)
         if (rank == 0) write (*, '(a, i0, 2a)') 'heat: step ', step, ': checkpoint ', &
            trim(merge('done  ', 'failed', ok))
         flush (output_unit)
         call scr_should_exit(stop_now, ierror)
      end if
   end do
   ok = .true.
   if (result /= '' .and. step >= steps) ok = save_plate()
   ! SCR: end. Copies the newest checkpoint to the prefix directory if it is not there.
   call scr_finalize(ierror)
   call MPI_Finalize(ierror)
   if (.not. ok) error stop 1

contains

   ! ---- the simulation, without SCR ----

   integer function number(which, default)
      integer, intent(in) :: which, default
      character(len=32) :: argument
      integer :: status
      call get_command_argument(which, argument)
      read (argument, *, iostat=status) number
      if (status /= 0) number = default
   end function number

   subroutine make_plate()
      first = int(int(side, int64)*rank/ranks)
      columns = int(int(side, int64)*(rank + 1)/ranks) - first
      if (.not. allocated(now)) allocate (now(0:side + 1, 0:columns + 1), next(0:side + 1, 0:columns + 1))
      now = 0
      now(0, :) = 100 ! the northern edge is kept hot
      next = now
   end subroutine make_plate

   subroutine advance()
      real(real64), allocatable :: other(:, :)
      integer :: west, east, j, ignored
      integer :: status(MPI_STATUS_SIZE)
      west = merge(rank - 1, MPI_PROC_NULL, rank > 0)
      east = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
      call MPI_Sendrecv(now(:, 1), side + 2, MPI_DOUBLE_PRECISION, west, 0, now(:, columns + 1), side + 2, &
                        MPI_DOUBLE_PRECISION, east, 0, MPI_COMM_WORLD, status, ignored)
      call MPI_Sendrecv(now(:, columns), side + 2, MPI_DOUBLE_PRECISION, east, 0, now(:, 0), side + 2, &
                        MPI_DOUBLE_PRECISION, west, 0, MPI_COMM_WORLD, status, ignored)
      do j = 1, columns
         next(1:side, j) = 0.25_real64*(now(0:side - 1, j) + now(2:side + 1, j) &
                                        + now(1:side, j - 1) + now(1:side, j + 1))
      end do
      call move_alloc(now, other)
      call move_alloc(next, now)
      call move_alloc(other, next)
   end subroutine advance

   !> Writes the plate into one file; all ranks take part.
   logical function save_plate()
      integer :: file, ignored
      integer :: status(MPI_STATUS_SIZE)
      integer(MPI_OFFSET_KIND) :: at
      call MPI_File_open(MPI_COMM_WORLD, trim(result), MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, &
                         file, ignored)
      save_plate = ignored == MPI_SUCCESS
      if (.not. save_plate) return
      at = int(first, MPI_OFFSET_KIND)*side*8
      call MPI_File_write_at_all(file, at, now(1:side, 1:columns), side*columns, MPI_DOUBLE_PRECISION, &
                                 status, ignored)
      save_plate = ignored == MPI_SUCCESS
      call MPI_File_close(file, ignored)
   end function save_plate

   ! ---- checkpoint and restart ----

   function file_of(dataset)
      character(len=*), intent(in) :: dataset
      character(len=SCR_MAX_FILENAME) :: file_of
      write (file_of, '(2a, i0)') trim(dataset), '/rank_', rank
   end function file_of

   logical function checkpoint(at_step)
      integer, intent(in) :: at_step
      character(len=SCR_MAX_FILENAME) :: dataset, path
      integer :: unit, status, code
      write (dataset, '(a, i0)') 'ckpt.', at_step
      ! SCR: open a dataset, ...
      call scr_start_output(dataset, SCR_FLAG_CHECKPOINT, code)
      checkpoint = code == SCR_SUCCESS
      if (.not. checkpoint) return
      ! SCR: ... ask where to write the file "ckpt.<step>/rank_<rank>", ...
      call scr_route_file(file_of(dataset), path, status)
      if (status == SCR_SUCCESS) then
         open (newunit=unit, file=path, form='unformatted', access='stream', status='replace', iostat=status)
         if (status == 0) write (unit, iostat=status) at_step, now
         if (status == 0) close (unit, iostat=status)
      end if
      ! SCR: ... and report success. The checkpoint is safe when all get SCR_SUCCESS.
      call scr_complete_output(merge(1, 0, status == 0), code)
      checkpoint = code == SCR_SUCCESS
   end function checkpoint

   !> Returns the step to continue from: that of the newest readable checkpoint, or 0.
   integer function restart()
      character(len=SCR_MAX_FILENAME) :: dataset, path
      integer :: have, unit, status, code
      do
         restart = 0
         ! SCR: is there a checkpoint? If one cannot be read, SCR offers older ones.
         call scr_have_restart(have, dataset, code)
         if (have == 0) return
         call scr_start_restart(dataset, code)
         call scr_route_file(file_of(dataset), path, status)
         if (status == SCR_SUCCESS) then
            open (newunit=unit, file=path, form='unformatted', access='stream', status='old', &
                  action='read', iostat=status)
            if (status == 0) then
               read (unit, iostat=status) restart, now
               close (unit)
            end if
         end if
         call scr_complete_restart(merge(1, 0, status == 0), code)
         if (code == SCR_SUCCESS) then
            if (rank == 0) write (*, '(3a, i0)') 'heat: restarted from ', trim(dataset), ', at step ', restart
            return
         end if
         call make_plate() ! discard the data that was read
      end do
   end function restart

end program heat_fortran
