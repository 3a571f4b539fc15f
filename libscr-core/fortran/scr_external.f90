! SPDX-License-Identifier: BSD-3-Clause
!> The calls of module scr as external subroutines, for programs that include 'scrf.h', or
!! declare nothing, as they do it with other versions of SCR:
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

subroutine scr_config(config, ierror)
   use scr, only: forward => scr_config
   implicit none
   character(len=*), intent(in) :: config
   integer, intent(out) :: ierror
   call forward(config, ierror)
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
