# SPDX-License-Identifier: GPL-2.0-or-later
# What configure.ac uses more than once.

# EROFS_FLAG(VARIABLE, FLAG...)
# Appends to VARIABLE those of the compiler flags that the compiler takes without a warning.
AC_DEFUN([EROFS_FLAG], [
for erofs_flag in $2; do
	AC_MSG_CHECKING([whether $CC takes $erofs_flag])
	erofs_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -Werror $erofs_flag"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
		[$1="$$1 $erofs_flag"
		 AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])])
	CFLAGS=$erofs_save_CFLAGS
done
])

# EROFS_LIB(NAME, SWITCH, WANTED, MODULE, INCLUDES, CALL, WHAT)
# Looks for an optional library by its pkg-config MODULE (may have a version) and proves with a
# link of CALL that it can be used by this compiler, which matters for cross builds and -m32.
#   WANTED    yes: an error if it is not there; no: not looked for; auto
#   Result    HAVE_<NAME> in config.h and as a conditional, <NAME>_CFLAGS, <NAME>_LIBS,
#             erofs_have_<NAME> = yes or no, erofs_why_<NAME> in words
AC_DEFUN([EROFS_LIB], [
erofs_have_$1=no
erofs_why_$1="switched off"
AS_IF([test "x$3" != xno], [
	PKG_CHECK_MODULES([$1], [$4], [
		erofs_save_CPPFLAGS=$CPPFLAGS
		erofs_save_LIBS=$LIBS
		CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
		LIBS="$$1_LIBS $LIBS"
		AC_MSG_CHECKING([whether $4 links])
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stddef.h>
#include <stdint.h>
$5]], [[$6;]])],
			[erofs_have_$1=yes
			 erofs_why_$1=`$PKG_CONFIG --modversion "m4_bpatsubst([$4], [ .*])"`],
			[erofs_why_$1="found, but does not link"])
		AC_MSG_RESULT([$erofs_have_$1])
		CPPFLAGS=$erofs_save_CPPFLAGS
		LIBS=$erofs_save_LIBS
	], [erofs_why_$1="not found"])
	AS_IF([test "x$3" = xyes && test "x$erofs_have_$1" = xno],
		[AC_MSG_ERROR([$2 was asked for, but $4 is not usable ($erofs_why_$1); package names: see the table in ./quickstart])])
])
AS_IF([test "x$erofs_have_$1" = xyes],
	[AC_DEFINE([HAVE_$1], [1], [$7])],
	[$1_CFLAGS=
	 $1_LIBS=])
AM_CONDITIONAL([HAVE_$1], [test "x$erofs_have_$1" = xyes])
])

# EROFS_ENABLE(NAME, HELP)
# A build variant: --enable-NAME, off by default, result in enable_NAME and a conditional.
AC_DEFUN([EROFS_ENABLE], [
AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [], [enable_$1=no])
AM_CONDITIONAL(m4_toupper([$1]), [test "x$enable_$1" = xyes])
])
