! SPDX-License-Identifier: BSD-3-Clause
!> SCR_CONFIG with three arguments, as SCR 3.1 has it, without the module: part of
!! test_scr_fortran. In a file of its own, as compilers compare the calls of one file.
subroutine test_three_arguments(failures)
   implicit none
   include 'scrf.inc'
   integer, intent(inout) :: failures
   character(len=40) :: value
   integer :: ierror

   value = 'untouched'
   call SCR_CONFIG('SCR_JOB_NAME=three  ', value, ierror)
   if (ierror /= SCR_SUCCESS .or. value /= '') failures = failures + 1
   call SCR_CONFIG('SCR_JOB_NAME', value, ierror)
   if (ierror /= SCR_SUCCESS .or. value /= 'three') failures = failures + 1
   call SCR_CONFIG('SCR_JOB_NAME', value(1:2), ierror)
   if (ierror /= SCR_ERR_ARGUMENT .or. value(1:2) /= 'th') failures = failures + 1
   call SCR_CONFIG('SCR_JOB_NAME=', value, ierror)
   call SCR_CONFIG('SCR_JOB_NAME', value, ierror)
   if (ierror /= SCR_SUCCESS .or. value /= '') failures = failures + 1
   if (failures > 0) write (*, '(a)') 'SCR_CONFIG with three arguments failed'
end subroutine test_three_arguments
