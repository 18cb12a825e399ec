/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* CRC-32C (Castagnoli), for superblocks. */
#ifndef EROFS_BASE_CRC32C_H
#define EROFS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * erofs_crc32c() - feed @len bytes into the register
 * @crc: the register so far; nothing is inverted, neither before nor behind
 * Return: the register.
 */
uint32_t erofs_crc32c(uint32_t crc, const void *buf, size_t len);

#endif
