! SPDX-License-Identifier: BSD-3-Clause
!> SCR for Fortran: the calls of scr.h as subroutines. scr.h describes the calls. The last
!! argument, ierror, receives the code of the call:
!!
!!     use mpi
!!     use scr
!!     character(len=SCR_MAX_FILENAME) :: path
!!     call MPI_Init(ierror)
!!     call scr_init(ierror)
!!     call scr_start_output('ckpt.7', SCR_FLAG_CHECKPOINT, ierror)
!!     call scr_route_file('ckpt.7/rank_3', path, ierror)
!!     open (newunit=unit, file=path, form='unformatted', access='stream')
!!
!! Trailing blanks of input texts are ignored; output texts are padded with blanks. An
!! output text that is longer than its variable is cut, and ierror is SCR_ERR_ARGUMENT if
!! the call itself succeeded. Variables of SCR_MAX_FILENAME characters are always long
!! enough for names. Flags are integers, 0 or 1, as in C. Numbers of ranks and files count
!! from 0, as in C.
!!
!! scr_external.f90 provides the same calls to programs without this module.
module scr
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_int64_t, &
                                          c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none
   private

   integer, parameter, public :: SCR_SUCCESS = 0
   integer, parameter, public :: SCR_FAILURE = 1
   integer, parameter, public :: SCR_ERR_DISABLED = 2
   integer, parameter, public :: SCR_ERR_STATE = 3
   integer, parameter, public :: SCR_ERR_ARGUMENT = 4
   integer, parameter, public :: SCR_ERR_CONFIG = 5
   integer, parameter, public :: SCR_ERR_CACHE = 6
   integer, parameter, public :: SCR_ERR_INVALID = 7
   integer, parameter, public :: SCR_ERR_REDUNDANCY = 8
   integer, parameter, public :: SCR_ERR_FLUSH = 9
   integer, parameter, public :: SCR_ERR_NO_DATASET = 10
   integer, parameter, public :: SCR_ERR_PREFIX = 11
   !> Maximum length of names and paths. In C, the value includes the NUL.
   integer, parameter, public :: SCR_MAX_FILENAME = 1024
   integer, parameter, public :: SCR_FLAG_NONE = 0
   integer, parameter, public :: SCR_FLAG_CHECKPOINT = 1
   integer, parameter, public :: SCR_FLAG_OUTPUT = 2
   integer, parameter, public :: SCR_FLAG_BYPASS = 4

   public :: scr_init, scr_init_comm, scr_finalize, scr_abandon, scr_config
   public :: scr_need_checkpoint, scr_start_output, scr_complete_output
   public :: scr_route_file, scr_route_file_part
   public :: scr_start_checkpoint, scr_complete_checkpoint
   public :: scr_have_restart, scr_start_restart, scr_complete_restart
   public :: scr_fetch_files, scr_fetch_file_parts
   public :: scr_dataset_ranks, scr_dataset_files, scr_dataset_file
   public :: scr_should_exit, scr_current, scr_delete, scr_drop
   public :: scr_get_version, scr_strerror

   !> scr_config(config, ierror) sets; scr_config(config, value, flag, ierror) reads.
   interface scr_config
      module procedure set_config, ask_config, either_config
   end interface scr_config

   interface
      function c_init() bind(C, name='SCR_Init')
         import :: c_int
         integer(c_int) :: c_init
      end function c_init

      function c_init_comm(comm) bind(C, name='scr_fortran_init_comm')
         import :: c_int
         integer(c_int), intent(in), value :: comm
         integer(c_int) :: c_init_comm
      end function c_init_comm

      function c_finalize() bind(C, name='SCR_Finalize')
         import :: c_int
         integer(c_int) :: c_finalize
      end function c_finalize

      function c_abandon() bind(C, name='SCR_Abandon')
         import :: c_int
         integer(c_int) :: c_abandon
      end function c_abandon

      function c_config(config) bind(C, name='SCR_Config')
         import :: c_char, c_ptr
         character(kind=c_char), intent(in) :: config(*)
         type(c_ptr) :: c_config
      end function c_config

      function c_need_checkpoint(flag) bind(C, name='SCR_Need_checkpoint')
         import :: c_int
         integer(c_int), intent(out) :: flag
         integer(c_int) :: c_need_checkpoint
      end function c_need_checkpoint

      function c_start_output(name, flags) bind(C, name='SCR_Start_output')
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), intent(in), value :: flags
         integer(c_int) :: c_start_output
      end function c_start_output

      function c_start_unnamed(name, flags) bind(C, name='SCR_Start_output')
         import :: c_int, c_ptr
         type(c_ptr), intent(in), value :: name
         integer(c_int), intent(in), value :: flags
         integer(c_int) :: c_start_unnamed
      end function c_start_unnamed

      function c_route_file(name, file) bind(C, name='SCR_Route_file')
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         character(kind=c_char), intent(out) :: file(*)
         integer(c_int) :: c_route_file
      end function c_route_file

      function c_route_file_part(name, offset, length, file, at) bind(C, name='SCR_Route_file_part')
         import :: c_char, c_int, c_int64_t
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), intent(in), value :: offset, length
         character(kind=c_char), intent(out) :: file(*)
         integer(c_int64_t), intent(out) :: at
         integer(c_int) :: c_route_file_part
      end function c_route_file_part

      function c_complete_output(valid) bind(C, name='SCR_Complete_output')
         import :: c_int
         integer(c_int), intent(in), value :: valid
         integer(c_int) :: c_complete_output
      end function c_complete_output

      function c_start_checkpoint() bind(C, name='SCR_Start_checkpoint')
         import :: c_int
         integer(c_int) :: c_start_checkpoint
      end function c_start_checkpoint

      function c_complete_checkpoint(valid) bind(C, name='SCR_Complete_checkpoint')
         import :: c_int
         integer(c_int), intent(in), value :: valid
         integer(c_int) :: c_complete_checkpoint
      end function c_complete_checkpoint

      function c_have_restart(flag, name) bind(C, name='SCR_Have_restart')
         import :: c_char, c_int
         integer(c_int), intent(out) :: flag
         character(kind=c_char), intent(out) :: name(*)
         integer(c_int) :: c_have_restart
      end function c_have_restart

      function c_start_restart(name) bind(C, name='SCR_Start_restart')
         import :: c_char, c_int
         character(kind=c_char), intent(out) :: name(*)
         integer(c_int) :: c_start_restart
      end function c_start_restart

      function c_complete_restart(valid) bind(C, name='SCR_Complete_restart')
         import :: c_int
         integer(c_int), intent(in), value :: valid
         integer(c_int) :: c_complete_restart
      end function c_complete_restart

      function c_fetch_files(count, names) bind(C, name='SCR_Fetch_files')
         import :: c_int, c_ptr
         integer(c_int), intent(in), value :: count
         type(c_ptr), intent(in) :: names(*)
         integer(c_int) :: c_fetch_files
      end function c_fetch_files

      function c_fetch_file_parts(count, names, offsets, lengths) bind(C, name='SCR_Fetch_file_parts')
         import :: c_int, c_int64_t, c_ptr
         integer(c_int), intent(in), value :: count
         type(c_ptr), intent(in) :: names(*)
         integer(c_int64_t), intent(in) :: offsets(*), lengths(*)
         integer(c_int) :: c_fetch_file_parts
      end function c_fetch_file_parts

      function c_dataset_ranks(ranks) bind(C, name='SCR_Dataset_ranks')
         import :: c_int
         integer(c_int), intent(out) :: ranks
         integer(c_int) :: c_dataset_ranks
      end function c_dataset_ranks

      function c_dataset_files(rank, files) bind(C, name='SCR_Dataset_files')
         import :: c_int
         integer(c_int), intent(in), value :: rank
         integer(c_int), intent(out) :: files
         integer(c_int) :: c_dataset_files
      end function c_dataset_files

      function c_dataset_file(rank, number, name, size) bind(C, name='SCR_Dataset_file')
         import :: c_char, c_int, c_int64_t
         integer(c_int), intent(in), value :: rank, number
         character(kind=c_char), intent(out) :: name(*)
         integer(c_int64_t), intent(out) :: size
         integer(c_int) :: c_dataset_file
      end function c_dataset_file

      function c_should_exit(flag) bind(C, name='SCR_Should_exit')
         import :: c_int
         integer(c_int), intent(out) :: flag
         integer(c_int) :: c_should_exit
      end function c_should_exit

      function c_current(name) bind(C, name='SCR_Current')
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int) :: c_current
      end function c_current

      function c_delete(name) bind(C, name='SCR_Delete')
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int) :: c_delete
      end function c_delete

      function c_drop(name) bind(C, name='SCR_Drop')
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int) :: c_drop
      end function c_drop

      function c_get_version() bind(C, name='SCR_Get_version')
         import :: c_ptr
         type(c_ptr) :: c_get_version
      end function c_get_version

      function c_strerror(code) bind(C, name='SCR_Strerror')
         import :: c_int, c_ptr
         integer(c_int), intent(in), value :: code
         type(c_ptr) :: c_strerror
      end function c_strerror

      function c_strlen(text) bind(C, name='strlen')
         import :: c_ptr, c_size_t
         type(c_ptr), intent(in), value :: text
         integer(c_size_t) :: c_strlen
      end function c_strlen

      subroutine c_free(memory) bind(C, name='free')
         import :: c_ptr
         type(c_ptr), intent(in), value :: memory
      end subroutine c_free
   end interface

contains

   ! ---- texts to C and back ----

   pure function to_c(text)
      character(len=*), intent(in) :: text
      character(kind=c_char, len=len_trim(text) + 1) :: to_c
      to_c = trim(text)//c_null_char
   end function to_c

   !> Copies the text before the NUL, as far as it fits.
   subroutine from_c(c_text, text, ierror)
      character(kind=c_char), intent(in) :: c_text(:)
      character(len=*), intent(out) :: text
      integer, intent(inout) :: ierror
      integer :: i
      text = ''
      do i = 1, size(c_text)
         if (c_text(i) == c_null_char) return
         if (i > len(text)) exit
         text(i:i) = c_text(i)
      end do
      if (i <= size(c_text) .and. ierror == SCR_SUCCESS) ierror = SCR_ERR_ARGUMENT
   end subroutine from_c

   subroutine from_pointer(pointer, text, ierror)
      type(c_ptr), intent(in) :: pointer
      character(len=*), intent(out) :: text
      integer, intent(inout) :: ierror
      character(kind=c_char), pointer :: c_text(:)
      text = ''
      if (.not. c_associated(pointer)) return
      call c_f_pointer(pointer, c_text, [c_strlen(pointer)])
      call from_c(c_text, text, ierror)
   end subroutine from_pointer

   ! ---- begin and end ----

   subroutine scr_init(ierror)
      integer, intent(out) :: ierror
      ierror = c_init()
   end subroutine scr_init

   !> comm: a communicator of the module mpi or of mpif.h; with mpi_f08, comm%MPI_VAL.
   subroutine scr_init_comm(comm, ierror)
      integer, intent(in) :: comm
      integer, intent(out) :: ierror
      ierror = c_init_comm(int(comm, c_int))
   end subroutine scr_init_comm

   subroutine scr_finalize(ierror)
      integer, intent(out) :: ierror
      ierror = c_finalize()
   end subroutine scr_finalize

   subroutine scr_abandon(ierror)
      integer, intent(out) :: ierror
      ierror = c_abandon()
   end subroutine scr_abandon

   ! ---- configuration ----

   !> 'NAME=value' sets, 'NAME=' unsets. ierror is always SCR_SUCCESS: mistakes are
   !! printed as messages, as in C. This form cannot read a value.
   subroutine set_config(config, ierror)
      character(len=*), intent(in) :: config
      integer, intent(out) :: ierror
      type(c_ptr) :: answer
      answer = c_config(to_c(config))
      if (c_associated(answer)) call c_free(answer)
      ierror = SCR_SUCCESS
   end subroutine set_config

   !> 'NAME' reads a value. flag is 1 if there is one; otherwise 0, and value is blank.
   subroutine ask_config(config, value, flag, ierror)
      character(len=*), intent(in) :: config
      character(len=*), intent(out) :: value
      integer, intent(out) :: flag, ierror
      type(c_ptr) :: answer
      ierror = SCR_SUCCESS
      answer = c_config(to_c(config))
      flag = merge(1, 0, c_associated(answer))
      call from_pointer(answer, value, ierror)
      if (flag == 1) call c_free(answer)
   end subroutine ask_config

   !> The form of SCR 3.1: sets or reads. value is blank if there is none.
   subroutine either_config(config, value, ierror)
      character(len=*), intent(in) :: config
      character(len=*), intent(out) :: value
      integer, intent(out) :: ierror
      integer :: ignored
      call ask_config(config, value, ignored, ierror)
   end subroutine either_config

   ! ---- output ----

   subroutine scr_need_checkpoint(flag, ierror)
      integer, intent(out) :: flag, ierror
      integer(c_int) :: c_flag
      ierror = c_need_checkpoint(c_flag)
      flag = c_flag
   end subroutine scr_need_checkpoint

   !> If name is blank, the dataset is called scr.dataset.<id>.
   subroutine scr_start_output(name, flags, ierror)
      character(len=*), intent(in) :: name
      integer, intent(in) :: flags
      integer, intent(out) :: ierror
      if (len_trim(name) == 0) then
         ierror = c_start_unnamed(c_null_ptr, int(flags, c_int))
      else
         ierror = c_start_output(to_c(name), int(flags, c_int))
      end if
   end subroutine scr_start_output

   subroutine scr_route_file(name, file, ierror)
      character(len=*), intent(in) :: name
      character(len=*), intent(out) :: file
      integer, intent(out) :: ierror
      character(kind=c_char) :: c_file(SCR_MAX_FILENAME)
      ierror = c_route_file(to_c(name), c_file)
      call from_c(c_file, file, ierror)
   end subroutine scr_route_file

   !> offset, length and at are in bytes and count from 0: for a stream, pos=at + 1.
   subroutine scr_route_file_part(name, offset, length, file, at, ierror)
      character(len=*), intent(in) :: name
      integer(int64), intent(in) :: offset, length
      character(len=*), intent(out) :: file
      integer(int64), intent(out) :: at
      integer, intent(out) :: ierror
      character(kind=c_char) :: c_file(SCR_MAX_FILENAME)
      integer(c_int64_t) :: c_at
      ierror = c_route_file_part(to_c(name), offset, length, c_file, c_at)
      at = c_at
      call from_c(c_file, file, ierror)
   end subroutine scr_route_file_part

   subroutine scr_complete_output(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
      ierror = c_complete_output(int(valid, c_int))
   end subroutine scr_complete_output

   subroutine scr_start_checkpoint(ierror)
      integer, intent(out) :: ierror
      ierror = c_start_checkpoint()
   end subroutine scr_start_checkpoint

   subroutine scr_complete_checkpoint(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
      ierror = c_complete_checkpoint(int(valid, c_int))
   end subroutine scr_complete_checkpoint

   ! ---- restart ----

   subroutine scr_have_restart(flag, name, ierror)
      integer, intent(out) :: flag
      character(len=*), intent(out) :: name
      integer, intent(out) :: ierror
      integer(c_int) :: c_flag
      character(kind=c_char) :: c_name(SCR_MAX_FILENAME)
      ierror = c_have_restart(c_flag, c_name)
      flag = c_flag
      call from_c(c_name, name, ierror)
   end subroutine scr_have_restart

   !> ierror is no error if name is cut: the restart is open and must be completed.
   subroutine scr_start_restart(name, ierror)
      character(len=*), intent(out) :: name
      integer, intent(out) :: ierror
      character(kind=c_char) :: c_name(SCR_MAX_FILENAME)
      integer :: ignored
      c_name(1) = c_null_char ! a call that fails does not write to it
      ierror = c_start_restart(c_name)
      ignored = ierror
      call from_c(c_name, name, ignored)
   end subroutine scr_start_restart

   subroutine scr_complete_restart(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
      ierror = c_complete_restart(int(valid, c_int))
   end subroutine scr_complete_restart

   ! ---- files of other ranks, and another number of ranks ----

   !> Converts names to C strings in texts; false without memory.
   logical function names_to_c(count, names, texts, pointers)
      integer, intent(in) :: count
      character(len=*), intent(in) :: names(*)
      character(kind=c_char), allocatable, target, intent(out) :: texts(:, :)
      type(c_ptr), allocatable, intent(out) :: pointers(:)
      integer :: i, letter, status
      allocate (texts(len(names) + 1, count), pointers(count), stat=status)
      names_to_c = status == 0
      if (.not. names_to_c) return
      do i = 1, count
         do letter = 1, len_trim(names(i))
            texts(letter, i) = names(i) (letter:letter)
         end do
         texts(len_trim(names(i)) + 1, i) = c_null_char
         pointers(i) = c_loc(texts(1, i))
      end do
   end function names_to_c

   !> Uses the first count names. Ranks may pass different counts, also 0.
   subroutine scr_fetch_files(count, names, ierror)
      integer, intent(in) :: count
      character(len=*), intent(in) :: names(*)
      integer, intent(out) :: ierror
      character(kind=c_char), allocatable, target :: texts(:, :)
      type(c_ptr), allocatable :: pointers(:)
      if (names_to_c(count, names, texts, pointers)) then
         ierror = c_fetch_files(int(count, c_int), pointers)
      else ! other ranks are in the call: make it fail on all ranks
         ierror = c_fetch_files(1_c_int, [c_null_ptr])
      end if
   end subroutine scr_fetch_files

   !> Does the same for parts of files: lengths(i) bytes from offsets(i) on, which counts
   !! from 0.
   subroutine scr_fetch_file_parts(count, names, offsets, lengths, ierror)
      integer, intent(in) :: count
      character(len=*), intent(in) :: names(*)
      integer(int64), intent(in) :: offsets(*), lengths(*)
      integer, intent(out) :: ierror
      character(kind=c_char), allocatable, target :: texts(:, :)
      type(c_ptr), allocatable :: pointers(:)
      if (names_to_c(count, names, texts, pointers)) then
         ierror = c_fetch_file_parts(int(count, c_int), pointers, offsets, lengths)
      else
         ierror = c_fetch_file_parts(1_c_int, [c_null_ptr], [0_c_int64_t], [0_c_int64_t])
      end if
   end subroutine scr_fetch_file_parts

   subroutine scr_dataset_ranks(ranks, ierror)
      integer, intent(out) :: ranks, ierror
      integer(c_int) :: c_ranks
      ierror = c_dataset_ranks(c_ranks)
      ranks = c_ranks
   end subroutine scr_dataset_ranks

   !> rank: from 0 to the number of ranks minus 1.
   subroutine scr_dataset_files(rank, files, ierror)
      integer, intent(in) :: rank
      integer, intent(out) :: files, ierror
      integer(c_int) :: c_files
      ierror = c_dataset_files(int(rank, c_int), c_files)
      files = c_files
   end subroutine scr_dataset_files

   !> rank: as above; number: from 0 to the number of files of that rank minus 1.
   subroutine scr_dataset_file(rank, number, name, size, ierror)
      integer, intent(in) :: rank, number
      character(len=*), intent(out) :: name
      integer(int64), intent(out) :: size
      integer, intent(out) :: ierror
      character(kind=c_char) :: c_name(SCR_MAX_FILENAME)
      integer(c_int64_t) :: c_bytes
      ierror = c_dataset_file(int(rank, c_int), int(number, c_int), c_name, c_bytes)
      size = c_bytes
      call from_c(c_name, name, ierror)
   end subroutine scr_dataset_file

   ! ---- control ----

   subroutine scr_should_exit(flag, ierror)
      integer, intent(out) :: flag, ierror
      integer(c_int) :: c_flag
      ierror = c_should_exit(c_flag)
      flag = c_flag
   end subroutine scr_should_exit

   subroutine scr_current(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
      ierror = c_current(to_c(name))
   end subroutine scr_current

   subroutine scr_delete(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
      ierror = c_delete(to_c(name))
   end subroutine scr_delete

   subroutine scr_drop(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
      ierror = c_drop(to_c(name))
   end subroutine scr_drop

   ! ---- texts ----

   subroutine scr_get_version(version, ierror)
      character(len=*), intent(out) :: version
      integer, intent(out) :: ierror
      ierror = SCR_SUCCESS
      call from_pointer(c_get_version(), version, ierror)
   end subroutine scr_get_version

   subroutine scr_strerror(code, text, ierror)
      integer, intent(in) :: code
      character(len=*), intent(out) :: text
      integer, intent(out) :: ierror
      ierror = SCR_SUCCESS
      call from_pointer(c_strerror(int(code, c_int)), text, ierror)
   end subroutine scr_strerror

end module scr
