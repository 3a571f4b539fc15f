! SPDX-License-Identifier: BSD-3-Clause
!> What the Fortran calls add to those of C: texts, flags, communicators; and that each
!! reaches the call of its name.
program test_scr_fortran
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
   use, intrinsic :: iso_fortran_env, only: error_unit, int64
   use mpi
   use scr
   implicit none
   integer :: failures, all_failures, rank, ranks, ierror
   character(kind=c_char, len=64) :: folder
   external :: test_external, test_three_arguments

   interface
      subroutine c_mkdtemp(template) bind(C, name='mkdtemp')
         import :: c_char
         character(kind=c_char), intent(inout) :: template(*)
      end subroutine c_mkdtemp
      function c_setenv(name, value, overwrite) bind(C, name='setenv')
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*), value(*)
         integer(c_int), intent(in), value :: overwrite
         integer(c_int) :: c_setenv
      end function c_setenv
   end interface

   failures = 0
   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   call make_folder()
   call test_texts()
   call test_config()
   call test_wrong_state()
   call test_communicator()
   call test_output()
   call test_restart()
   call test_names()
   call test_parts()
   call test_external(failures)
   call test_three_arguments(failures)
   call MPI_Barrier(MPI_COMM_WORLD, ierror)
   if (rank == 0) call execute_command_line('rm -rf '//folder(1:index(folder, c_null_char) - 1))
   call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
   call MPI_Finalize(ierror)
   call scr_init_comm(MPI_COMM_WORLD, ierror)
   call check(ierror == SCR_ERR_STATE, 'after MPI')
   if (failures > 0 .or. all_failures > 0) error stop 1

contains

   subroutine check(condition, text)
      logical, intent(in) :: condition
      character(len=*), intent(in) :: text
      if (condition) return
      write (error_unit, '(a, i0, 2a)') 'rank ', rank, ': failed: ', text
      failures = failures + 1
   end subroutine check

   subroutine make_folder()
      character(len=14), parameter :: names(3) = &
                                      ['SCR_PREFIX    ', 'SCR_CNTL_BASE ', 'SCR_CACHE_BASE']
      integer :: i
      folder = '/tmp/scr-test-XXXXXX'//c_null_char
      if (rank == 0) call c_mkdtemp(folder)
      call MPI_Bcast(folder, len(folder), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
      do i = 1, size(names)
         call check(c_setenv(trim(names(i))//c_null_char, folder, 1) == 0, 'setenv')
      end do
      call check(c_setenv('SCR_COPY_TYPE'//c_null_char, 'SINGLE'//c_null_char, 1) == 0, 'setenv')
   end subroutine make_folder

   !> Filled up with blanks, and cut where they do not fit.
   subroutine test_texts()
      character(len=80) :: text
      character(len=7) :: exact
      character(len=3) :: short
      text = repeat('x', 80)
      call scr_strerror(SCR_SUCCESS, text, ierror)
      call check(ierror == SCR_SUCCESS .and. text == 'success', 'a text')
      call check(text(8:80) == repeat(' ', 73), 'blanks after a text')
      call scr_strerror(SCR_SUCCESS, exact, ierror)
      call check(ierror == SCR_SUCCESS .and. exact == 'success', 'a text that fits exactly')
      call scr_strerror(SCR_SUCCESS, short, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. short == 'suc', 'a text that is cut')
      call scr_strerror(SCR_ERR_PREFIX, text, ierror)
      call check(index(text, 'prefix directory') > 0, 'text of SCR_ERR_PREFIX')
      call scr_get_version(text, ierror)
      call check(ierror == SCR_SUCCESS .and. text(1:1) == 'v', 'version')
   end subroutine test_texts

   subroutine test_config()
      character(len=40) :: value
      character(len=2) :: short
      integer :: flag
      call scr_config('SCR_JOB_NAME=fortran=job    ', ierror)
      call check(ierror == SCR_SUCCESS, 'set')
      call scr_config('SCR_JOB_NAME', value, flag, ierror)
      call check(ierror == SCR_SUCCESS .and. flag == 1 .and. value == 'fortran=job', 'ask')
      call scr_config('SCR_JOB_NAME  ', short, flag, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. flag == 1 .and. short == 'fo', 'ask for too much')
      call scr_config('SCR_JOB_NAME=', ierror)
      call scr_config('SCR_JOB_NAME', value, flag, ierror)
      call check(ierror == SCR_SUCCESS .and. flag == 0 .and. value == '', 'ask for nothing')
      call scr_config('SCR_JOB_NAME=3.1', value, ierror)
      call check(ierror == SCR_SUCCESS .and. value == '', 'set with three arguments')
      call scr_config('SCR_JOB_NAME', value, ierror)
      call check(ierror == SCR_SUCCESS .and. value == '3.1', 'ask with three arguments')
      call scr_config('SCR_JOB_NAME=', ierror)
   end subroutine test_config

   !> Every output is set.
   subroutine test_wrong_state()
      character(len=SCR_MAX_FILENAME) :: text
      integer :: flag
      flag = 7
      call scr_need_checkpoint(flag, ierror)
      call check(ierror == SCR_ERR_STATE .and. flag == 0, 'need')
      flag = 7
      call scr_should_exit(flag, ierror)
      call check(ierror == SCR_ERR_STATE .and. flag == 0, 'should exit')
      flag = 7
      text = 'x'
      call scr_have_restart(flag, text, ierror)
      call check(ierror == SCR_ERR_STATE .and. flag == 0 .and. text == '', 'have')
      text = 'x'
      call scr_start_restart(text, ierror)
      call check(ierror == SCR_ERR_STATE .and. text == '', 'start restart')
      call scr_route_file('a/file  ', text, ierror)
      call check(ierror == SCR_SUCCESS .and. text == 'a/file', 'route')
      call wrong_state_of_files()
      call scr_complete_output(1, ierror)
      call check(ierror == SCR_ERR_STATE, 'complete output')
      call scr_complete_restart(1, ierror)
      call check(ierror == SCR_ERR_STATE, 'complete restart')
      call scr_start_output('a', SCR_FLAG_NONE, ierror)
      call check(ierror == SCR_ERR_STATE, 'start output')
      call scr_finalize(ierror)
      call check(ierror == SCR_ERR_STATE, 'finalize')
      call scr_abandon(ierror)
      call check(ierror == SCR_ERR_STATE, 'abandon')
   end subroutine test_wrong_state

   subroutine wrong_state_of_files()
      character(len=SCR_MAX_FILENAME) :: name
      integer :: number
      integer(int64) :: bytes
      number = 7
      call scr_dataset_ranks(number, ierror)
      call check(ierror == SCR_ERR_STATE .and. number == 0, 'ranks')
      number = 7
      call scr_dataset_files(0, number, ierror)
      call check(ierror == SCR_ERR_STATE .and. number == 0, 'files')
      bytes = 7
      name = 'x'
      call scr_dataset_file(0, 0, name, bytes, ierror)
      call check(ierror == SCR_ERR_STATE .and. name == '' .and. bytes == 0, 'file')
      call scr_fetch_files(0, [name], ierror)
      call check(ierror == SCR_ERR_STATE, 'fetch')
      call scr_fetch_file_parts(0, [name], [bytes], [bytes], ierror)
      call check(ierror == SCR_ERR_STATE, 'fetch parts')
      call scr_route_file_part('a/file  ', 2_int64**40, 3_int64, name, bytes, ierror)
      call check(ierror == SCR_SUCCESS .and. name == 'a/file' .and. bytes == 2_int64**40, 'route a part')
   end subroutine wrong_state_of_files

   !> Ranks are those of the communicator: its rank 0 decides the name.
   subroutine test_communicator()
      integer :: comm
      call scr_init_comm(MPI_COMM_NULL, ierror)
      call check(ierror == SCR_ERR_ARGUMENT, 'no communicator')
      call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comm, ierror)
      call scr_init_comm(comm, ierror)
      call check(ierror == SCR_SUCCESS, 'a communicator')
      call MPI_Comm_free(comm, ierror)
      call scr_finalize(ierror)
      call check(ierror == SCR_SUCCESS, 'finalize')
   end subroutine test_communicator

   !> The file of a rank in a dataset.
   character(len=SCR_MAX_FILENAME) function name_of(dataset, owner)
      character(len=*), intent(in) :: dataset
      integer, intent(in) :: owner
      write (name_of, '(4a, i0)') folder(1:index(folder, c_null_char) - 1), '/', trim(dataset), '/', owner
   end function name_of

   !> It is written by its rank, or read by any; 1 if it has (had) the number of its rank.
   integer function transfer_file(name, owner, writing)
      character(len=*), intent(in) :: name
      integer, intent(in) :: owner
      logical, intent(in) :: writing
      character(len=SCR_MAX_FILENAME) :: path
      integer :: unit, status, found
      call scr_route_file(name_of(name, owner), path, status)
      found = owner + 1
      if (status == 0) open (newunit=unit, file=path, form='unformatted', access='stream', iostat=status)
      if (status == 0) then
         if (writing) then
            write (unit, iostat=status) owner
            found = owner
         else
            read (unit, iostat=status) found
         end if
         close (unit)
      end if
      transfer_file = merge(1, 0, status == 0 .and. found == owner)
   end function transfer_file

   subroutine write_dataset(name, flags, valid, wanted)
      character(len=*), intent(in) :: name
      integer, intent(in) :: flags, valid, wanted
      character(len=SCR_MAX_FILENAME) :: folder_name
      call scr_start_output(name, flags, ierror)
      call check(ierror == SCR_SUCCESS, 'start '//name)
      folder_name = name
      if (name == '') folder_name = 'unnamed'
      call check(transfer_file(folder_name, rank, .true.) == 1, 'write '//name)
      call scr_complete_output(valid, ierror)
      call check(ierror == wanted, 'complete '//name)
   end subroutine write_dataset

   subroutine test_output()
      integer :: flag
      call scr_config('SCR_CHECKPOINT_INTERVAL=2', ierror)
      call scr_config('SCR_RESTART_RANKS=any', ierror)
      call scr_init(ierror)
      call check(ierror == SCR_SUCCESS, 'init')
      call scr_need_checkpoint(flag, ierror)
      call check(flag == 0, 'the first call')
      call scr_need_checkpoint(flag, ierror)
      call check(flag == 1, 'the second call')
      call write_dataset('a  ', SCR_FLAG_CHECKPOINT, 1, SCR_SUCCESS)
      call write_dataset('bad', SCR_FLAG_CHECKPOINT, 0, SCR_ERR_INVALID)
      call write_dataset('out', SCR_FLAG_OUTPUT, 1, SCR_SUCCESS)
      call write_dataset('', ior(SCR_FLAG_CHECKPOINT, SCR_FLAG_OUTPUT), 1, SCR_SUCCESS)
      call scr_start_checkpoint(ierror)
      call check(ierror == SCR_SUCCESS, 'start checkpoint')
      call check(transfer_file('older', rank, .true.) == 1, 'write')
      call scr_complete_checkpoint(1, ierror)
      call check(ierror == SCR_SUCCESS, 'complete checkpoint')
      call scr_should_exit(flag, ierror)
      call check(ierror == SCR_SUCCESS .and. flag == 0, 'should exit')
   end subroutine test_output

   !> From the newest to the oldest.
   subroutine test_restart()
      character(len=SCR_MAX_FILENAME) :: name, again
      character(len=5) :: short
      integer :: flag
      call scr_have_restart(flag, name, ierror)
      call check(ierror == SCR_SUCCESS .and. flag == 1 .and. name == 'scr.dataset.5', 'the newest')
      call scr_start_restart(again, ierror)
      call check(ierror == SCR_SUCCESS .and. again == name, 'start restart')
      call check(transfer_file('older', rank, .false.) == 1, 'read')
      call check_files('older')
      call scr_complete_restart(0, ierror)
      call check(ierror == SCR_ERR_INVALID, 'complete restart, not valid')
      call scr_have_restart(flag, short, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. flag == 1 .and. short == 'scr.d', 'a name that is cut')
      call scr_start_restart(short, ierror)
      call check(ierror == SCR_SUCCESS .and. short == 'scr.d', 'start all the same')
      call check(transfer_file('unnamed', rank, .false.) == 1, 'read the unnamed one')
      call scr_complete_restart(1, ierror)
      call check(ierror == SCR_SUCCESS, 'complete restart')
   end subroutine test_restart

   !> Of the next rank, in the open restart.
   subroutine check_files(dataset)
      character(len=*), intent(in) :: dataset
      character(len=SCR_MAX_FILENAME) :: names(3), path
      character(len=5) :: short
      integer :: number, next
      integer(int64) :: bytes
      next = mod(rank + 1, ranks)
      call scr_dataset_ranks(number, ierror)
      call check(ierror == SCR_SUCCESS .and. number == ranks, 'ranks of the checkpoint')
      call scr_dataset_files(next, number, ierror)
      call check(ierror == SCR_SUCCESS .and. number == 1, 'files of a rank')
      call scr_dataset_files(ranks, number, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. number == 0, 'files of no rank')
      names = name_of(dataset, rank)
      call scr_dataset_file(next, 0, names(2), bytes, ierror)
      path = name_of(dataset, next)
      call check(ierror == SCR_SUCCESS .and. names(2) == path, 'name of a file')
      call check(bytes == storage_size(rank)/8, 'size of a file')
      call scr_dataset_file(next, 0, short, bytes, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. short == folder(1:5), 'name of a file that is cut')
      call check(bytes == storage_size(rank)/8, 'size of that file')
      call scr_dataset_file(next, 1, path, bytes, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. path == '' .and. bytes == 0, 'no such file')
      names(3) = 'none'
      call scr_route_file(names(2), path, ierror)
      call check(ierror == merge(SCR_SUCCESS, SCR_ERR_ARGUMENT, ranks == 1), 'not fetched yet')
      call scr_fetch_files(3, names, ierror)
      call check(ierror == SCR_ERR_ARGUMENT, 'fetch a file that nobody wrote')
      call scr_fetch_files(merge(2, 0, rank == 0), names, ierror)
      call check(ierror == SCR_SUCCESS, 'fetch on one rank')
      call scr_fetch_files(2, names, ierror)
      call check(ierror == SCR_SUCCESS, 'fetch')
      call check(transfer_file(dataset, next, .false.) == 1, 'read the file of another rank')
   end subroutine check_files

   subroutine test_names()
      character(len=SCR_MAX_FILENAME) :: name
      integer :: flag
      call scr_current('no', ierror)
      call check(ierror == SCR_ERR_NO_DATASET, 'current of no dataset')
      call scr_current('scr.dataset.4  ', ierror)
      call check(ierror == SCR_SUCCESS, 'current')
      call scr_have_restart(flag, name, ierror)
      call check(name == 'scr.dataset.4', 'the current one')
      call scr_drop('out ', ierror)
      call check(ierror == SCR_SUCCESS, 'drop')
      call scr_delete('scr.dataset.4 ', ierror)
      call check(ierror == SCR_SUCCESS, 'delete')
      call scr_drop('scr.dataset.4', ierror)
      call check(ierror == SCR_ERR_NO_DATASET, 'delete deletes')
      call scr_delete('', ierror)
      call check(ierror == SCR_ERR_ARGUMENT, 'delete without a name')
      call scr_finalize(ierror)
      call check(ierror == SCR_SUCCESS, 'finalize')
   end subroutine test_names

   !> Each rank writes its bytes of a file beyond 4 GiB, and reads those of the next.
   subroutine test_parts()
      integer(int64), parameter :: FAR = 2_int64**32 + 7
      character(len=SCR_MAX_FILENAME) :: name, path
      integer(int64) :: bytes, at
      integer :: unit, found, status, next
      bytes = storage_size(rank)/8
      next = mod(rank + 1, ranks)
      name = trim(folder(1:index(folder, c_null_char) - 1))//'/parts/all'
      call scr_init(ierror)
      call scr_start_output('parts', SCR_FLAG_CHECKPOINT, ierror)
      call scr_route_file_part(name, -1_int64, bytes, path, at, ierror)
      call check(ierror == SCR_ERR_ARGUMENT .and. path == name .and. at == -1, 'a negative offset')
      call scr_route_file_part(name, FAR + rank*bytes, bytes, path, at, ierror)
      call check(ierror == SCR_SUCCESS .and. at == 0, 'route a part in an output')
      open (newunit=unit, file=path, form='unformatted', access='stream', iostat=status)
      if (status == 0) write (unit, pos=at + 1, iostat=status) rank
      close (unit)
      call scr_complete_output(merge(1, 0, status == 0), ierror)
      call check(ierror == SCR_SUCCESS, 'complete an output of parts')
      call scr_have_restart(found, path, ierror)
      call scr_start_restart(path, ierror)
      call check(path == 'parts', 'restart from parts')
      call scr_fetch_file_parts(2, [name, name], [FAR, FAR + next*bytes], &
                                [bytes*ranks + 1, bytes], ierror)
      call check(ierror == SCR_ERR_ARGUMENT, 'fetch bytes beyond the end')
      call scr_fetch_file_parts(merge(2, 0, rank == 0), [name, name], [FAR - 4, FAR], [4 + bytes*ranks, bytes], ierror)
      call check(ierror == SCR_SUCCESS, 'fetch parts on one rank')
      call scr_fetch_file_parts(1, [name], [FAR + next*bytes], [bytes], ierror)
      call check(ierror == SCR_SUCCESS, 'fetch a part')
      call scr_route_file_part(name, FAR + next*bytes, bytes, path, at, ierror)
      call check(ierror == SCR_SUCCESS, 'route a part in a restart')
      found = -1
      open (newunit=unit, file=path, form='unformatted', access='stream', status='old', iostat=status)
      if (status == 0) read (unit, pos=at + 1, iostat=status) found
      close (unit)
      call check(status == 0 .and. found == next, 'read the part of another rank')
      call scr_complete_restart(1, ierror)
      call scr_delete('parts', ierror)
      call scr_finalize(ierror)
      call check(ierror == SCR_SUCCESS, 'finalize after parts')
   end subroutine test_parts

end program test_scr_fortran
