// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * CRC-32C, four bits a step: it runs once per image over 64 KiB at most, so a table of one cache
 * line beats one of a kilobyte.
 */
#include "base/crc32c.h"

/* Registers 0 to 15 after four shifts with the reflected polynomial 0x82f63b78. */
static const uint32_t crc32c_table[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
	0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t erofs_crc32c(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ crc32c_table[crc & 15];
		crc = crc >> 4 ^ crc32c_table[crc & 15];
	}
	return crc;
}
