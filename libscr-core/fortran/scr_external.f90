! SPDX-License-Identifier: BSD-3-Clause
!> The calls of module scr as external subroutines, for programs that include 'scrf.h' or
!! declare nothing, as with other versions of SCR:
!!
!!     include 'scrf.h'
!!     call SCR_INIT(ierror)

subroutine scr_init(ierror)
   use scr, only: forward => scr_init
   implicit none
   integer, intent(out) :: ierror
   call forward(ierror)
end subroutine scr_init

subroutine scr_init_comm(comm, ierror)
   use scr, only: forward => scr_init_comm
   implicit none
   integer, intent(in) :: comm
   integer, intent(out) :: ierror
   call forward(comm, ierror)
end subroutine scr_init_comm

subroutine scr_finalize(ierror)
   use scr, only: forward => scr_finalize
   implicit none
   integer, intent(out) :: ierror
   call forward(ierror)
end subroutine scr_finalize

subroutine scr_abandon(ierror)
   use scr, only: forward => scr_abandon
   implicit none
   integer, intent(out) :: ierror
   call forward(ierror)
end subroutine scr_abandon

!> Called with (config, ierror) or, as in SCR 3.1, with (config, value, ierror). Compilers
!! pass addresses, followed by the lengths of texts. So the third argument is either the
!! length of config, or the address of ierror, which is never in the first 64 KiB.
subroutine scr_config(config, second, third, config_length, value_length)
   use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_intptr_t, c_null_ptr
   use scr, only: forward => scr_config
   implicit none
   integer(c_intptr_t), value :: config, second, third, config_length, value_length
   integer(c_intptr_t), parameter :: LEAST_ADDRESS = 65536
   if (third < LEAST_ADDRESS) then
      call with_two(second, third)
   else
      call with_three(third, config_length, value_length)
   end if

contains

   subroutine with_two(ierror_address, length)
      integer(c_intptr_t), intent(in) :: ierror_address, length
      integer, pointer :: ierror
      call c_f_pointer(transfer(ierror_address, c_null_ptr), ierror)
      call forward(text_of(length), ierror)
   end subroutine with_two

   subroutine with_three(ierror_address, length, size)
      integer(c_intptr_t), intent(in) :: ierror_address, length, size
      integer, pointer :: ierror
      character(kind=c_char), pointer :: value(:)
      character(len=size) :: answer
      integer(c_intptr_t) :: i
      call c_f_pointer(transfer(ierror_address, c_null_ptr), ierror)
      call c_f_pointer(transfer(second, c_null_ptr), value, [size])
      call forward(text_of(length), answer, ierror)
      do i = 1, size
         value(i) = answer(i:i)
      end do
   end subroutine with_three

   function text_of(length) result(text)
      integer(c_intptr_t), intent(in) :: length
      character(len=length) :: text
      character(kind=c_char), pointer :: letters(:)
      integer(c_intptr_t) :: i
      call c_f_pointer(transfer(config, c_null_ptr), letters, [length])
      do i = 1, length
         text(i:i) = letters(i)
      end do
   end function text_of
end subroutine scr_config

subroutine scr_need_checkpoint(flag, ierror)
   use scr, only: forward => scr_need_checkpoint
   implicit none
   integer, intent(out) :: flag
   integer, intent(out) :: ierror
   call forward(flag, ierror)
end subroutine scr_need_checkpoint

subroutine scr_start_output(name, flags, ierror)
   use scr, only: forward => scr_start_output
   implicit none
   character(len=*), intent(in) :: name
   integer, intent(in) :: flags
   integer, intent(out) :: ierror
   call forward(name, flags, ierror)
end subroutine scr_start_output

subroutine scr_route_file(name, file, ierror)
   use scr, only: forward => scr_route_file
   implicit none
   character(len=*), intent(in) :: name
   character(len=*), intent(out) :: file
   integer, intent(out) :: ierror
   call forward(name, file, ierror)
end subroutine scr_route_file

subroutine scr_route_file_part(name, offset, length, file, at, ierror)
   use, intrinsic :: iso_fortran_env, only: int64
   use scr, only: forward => scr_route_file_part
   implicit none
   character(len=*), intent(in) :: name
   integer(int64), intent(in) :: offset, length
   character(len=*), intent(out) :: file
   integer(int64), intent(out) :: at
   integer, intent(out) :: ierror
   call forward(name, offset, length, file, at, ierror)
end subroutine scr_route_file_part

subroutine scr_complete_output(valid, ierror)
   use scr, only: forward => scr_complete_output
   implicit none
   integer, intent(in) :: valid
   integer, intent(out) :: ierror
   call forward(valid, ierror)
end subroutine scr_complete_output

subroutine scr_start_checkpoint(ierror)
   use scr, only: forward => scr_start_checkpoint
   implicit none
   integer, intent(out) :: ierror
   call forward(ierror)
end subroutine scr_start_checkpoint

subroutine scr_complete_checkpoint(valid, ierror)
   use scr, only: forward => scr_complete_checkpoint
   implicit none
   integer, intent(in) :: valid
   integer, intent(out) :: ierror
   call forward(valid, ierror)
end subroutine scr_complete_checkpoint

subroutine scr_have_restart(flag, name, ierror)
   use scr, only: forward => scr_have_restart
   implicit none
   integer, intent(out) :: flag
   character(len=*), intent(out) :: name
   integer, intent(out) :: ierror
   call forward(flag, name, ierror)
end subroutine scr_have_restart

subroutine scr_start_restart(name, ierror)
   use scr, only: forward => scr_start_restart
   implicit none
   character(len=*), intent(out) :: name
   integer, intent(out) :: ierror
   call forward(name, ierror)
end subroutine scr_start_restart

subroutine scr_complete_restart(valid, ierror)
   use scr, only: forward => scr_complete_restart
   implicit none
   integer, intent(in) :: valid
   integer, intent(out) :: ierror
   call forward(valid, ierror)
end subroutine scr_complete_restart

subroutine scr_fetch_files(count, names, ierror)
   use scr, only: forward => scr_fetch_files
   implicit none
   integer, intent(in) :: count
   character(len=*), intent(in) :: names(*)
   integer, intent(out) :: ierror
   call forward(count, names, ierror)
end subroutine scr_fetch_files

subroutine scr_fetch_file_parts(count, names, offsets, lengths, ierror)
   use, intrinsic :: iso_fortran_env, only: int64
   use scr, only: forward => scr_fetch_file_parts
   implicit none
   integer, intent(in) :: count
   character(len=*), intent(in) :: names(*)
   integer(int64), intent(in) :: offsets(*), lengths(*)
   integer, intent(out) :: ierror
   call forward(count, names, offsets, lengths, ierror)
end subroutine scr_fetch_file_parts

subroutine scr_dataset_ranks(ranks, ierror)
   use scr, only: forward => scr_dataset_ranks
   implicit none
   integer, intent(out) :: ranks
   integer, intent(out) :: ierror
   call forward(ranks, ierror)
end subroutine scr_dataset_ranks

subroutine scr_dataset_files(rank, files, ierror)
   use scr, only: forward => scr_dataset_files
   implicit none
   integer, intent(in) :: rank
   integer, intent(out) :: files
   integer, intent(out) :: ierror
   call forward(rank, files, ierror)
end subroutine scr_dataset_files

subroutine scr_dataset_file(rank, number, name, size, ierror)
   use, intrinsic :: iso_fortran_env, only: int64
   use scr, only: forward => scr_dataset_file
   implicit none
   integer, intent(in) :: rank, number
   character(len=*), intent(out) :: name
   integer(int64), intent(out) :: size
   integer, intent(out) :: ierror
   call forward(rank, number, name, size, ierror)
end subroutine scr_dataset_file

subroutine scr_should_exit(flag, ierror)
   use scr, only: forward => scr_should_exit
   implicit none
   integer, intent(out) :: flag
   integer, intent(out) :: ierror
   call forward(flag, ierror)
end subroutine scr_should_exit

subroutine scr_current(name, ierror)
   use scr, only: forward => scr_current
   implicit none
   character(len=*), intent(in) :: name
   integer, intent(out) :: ierror
   call forward(name, ierror)
end subroutine scr_current

subroutine scr_delete(name, ierror)
   use scr, only: forward => scr_delete
   implicit none
   character(len=*), intent(in) :: name
   integer, intent(out) :: ierror
   call forward(name, ierror)
end subroutine scr_delete

subroutine scr_drop(name, ierror)
   use scr, only: forward => scr_drop
   implicit none
   character(len=*), intent(in) :: name
   integer, intent(out) :: ierror
   call forward(name, ierror)
end subroutine scr_drop

subroutine scr_get_version(version, ierror)
   use scr, only: forward => scr_get_version
   implicit none
   character(len=*), intent(out) :: version
   integer, intent(out) :: ierror
   call forward(version, ierror)
end subroutine scr_get_version

subroutine scr_strerror(code, text, ierror)
   use scr, only: forward => scr_strerror
   implicit none
   integer, intent(in) :: code
   character(len=*), intent(out) :: text
   integer, intent(out) :: ierror
   call forward(code, text, ierror)
end subroutine scr_strerror
