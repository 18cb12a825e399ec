/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* All of liberofs. */
#ifndef EROFS_EROFS_H
#define EROFS_EROFS_H

#include <erofs/android.h>
#include <erofs/archive.h>
#include <erofs/check.h>
#include <erofs/diag.h>
#include <erofs/digest.h>
#include <erofs/engine.h>
#include <erofs/extract.h>
#include <erofs/image.h>
#include <erofs/inode.h>
#include <erofs/list.h>
#include <erofs/select.h>
#include <erofs/stats.h>
#include <erofs/verify.h>
#include <erofs/version.h>
#include <erofs/write.h>

#endif
