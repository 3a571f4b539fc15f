! SPDX-License-Identifier: BSD-3-Clause
!> The calls without the module, as older programs make them: part of test_scr_fortran.
subroutine test_external(failures)
   use, intrinsic :: iso_fortran_env, only: int64
   use mpi, only: MPI_Comm_rank, MPI_Comm_size, MPI_COMM_WORLD
   implicit none
   include 'scrf.inc'
   integer, intent(inout) :: failures
   character(len=SCR_MAX_FILENAME) :: name, path, names(2)
   integer :: flag, rank, ranks, ierror
   integer(int64) :: bytes, at

   call SCR_CONFIG('SCR_RESTART_RANKS=any', ierror)
   call SCR_CONFIG('SCR_CHECKPOINT_INTERVAL=1', ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_INIT(ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_NEED_CHECKPOINT(flag, ierror)
   call expect(flag, 1)
   call SCR_START_OUTPUT('external', SCR_FLAG_CHECKPOINT, ierror)
   call expect(ierror, SCR_SUCCESS)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call get_environment_variable('SCR_PREFIX', path)
   write (name, '(2a, i0)') trim(path), '/external/', rank
   call SCR_ROUTE_FILE(name, path, ierror)
   call expect(ierror, SCR_SUCCESS)
   open (newunit=flag, file=path, iostat=ierror)
   call expect(ierror, 0)
   write (flag, '(a)') 'four'
   close (flag)
   call SCR_ROUTE_FILE_PART('external/all', -1_int64, 1_int64, path, at, ierror)
   call expect(ierror, SCR_ERR_ARGUMENT)
   call expect(int(at), -1)
   name = path_of_part()
   call SCR_ROUTE_FILE_PART(name, int(5*rank, int64), 5_int64, path, at, ierror)
   call expect(ierror, SCR_SUCCESS)
   call expect(int(at), 0)
   open (newunit=flag, file=path, iostat=ierror)
   write (flag, '(a)') 'five'
   close (flag)
   call SCR_COMPLETE_OUTPUT(1, ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_START_CHECKPOINT(ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_COMPLETE_CHECKPOINT(0, ierror)
   call expect(ierror, SCR_ERR_INVALID)
   call SCR_HAVE_RESTART(flag, name, ierror)
   call expect(flag, 1)
   call SCR_START_RESTART(name, ierror)
   call expect(merge(1, 0, name == 'external'), 1)
   call SCR_ROUTE_FILE('external/none', path, ierror)
   call expect(ierror, SCR_ERR_ARGUMENT)
   call expect(merge(1, 0, path == 'external/none'), 1)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   call SCR_DATASET_RANKS(flag, ierror)
   call expect(flag, ranks)
   call SCR_DATASET_FILES(ranks - 1, flag, ierror)
   call expect(flag, 1)
   call SCR_DATASET_FILE(0, 0, names(1), bytes, ierror)
   call expect(int(bytes), 5)
   call SCR_DATASET_FILE(ranks - 1, 0, names(2), bytes, ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_FETCH_FILES(2, names, ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_ROUTE_FILE(names(2), path, ierror)
   call expect(ierror, SCR_SUCCESS)
   names(1) = path_of_part()
   call SCR_FETCH_FILE_PARTS(1, names, [3_int64], [5_int64*ranks - 3], ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_ROUTE_FILE_PART(names(1), 4_int64, 5_int64*ranks - 4, path, at, ierror)
   call expect(ierror, SCR_SUCCESS)
   call expect(int(at), merge(4, 1, ranks == 1))
   call SCR_COMPLETE_RESTART(1, ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_SHOULD_EXIT(flag, ierror)
   call expect(flag, 0)
   call SCR_CURRENT('no', ierror)
   call expect(ierror, SCR_ERR_NO_DATASET)
   call SCR_DROP('no', ierror)
   call expect(ierror, SCR_ERR_NO_DATASET)
   call SCR_DELETE('external', ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_FINALIZE(ierror)
   call expect(ierror, SCR_SUCCESS)
   call SCR_GET_VERSION(name, ierror)
   call expect(merge(1, 0, name(1:1) == 'v'), 1)
   call SCR_STRERROR(SCR_ERR_STATE, name, ierror)
   call expect(merge(1, 0, name == 'the call is not allowed in this state'), 1)

contains

   character(len=SCR_MAX_FILENAME) function path_of_part()
      call get_environment_variable('SCR_PREFIX', path_of_part)
      path_of_part = trim(path_of_part)//'/external/all'
   end function path_of_part

   subroutine expect(got, wanted)
      integer, intent(in) :: got, wanted
      if (got == wanted) return
      write (*, '(a, i0, a, i0)') 'external: failed: ', got, ' is not ', wanted
      failures = failures + 1
   end subroutine expect

end subroutine test_external
