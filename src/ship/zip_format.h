/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of zip archives: APPNOTE.TXT of PKWARE. All are little-endian. */
#ifndef WEFT_SHIP_ZIP_FORMAT_H
#define WEFT_SHIP_ZIP_FORMAT_H

#define ZIP_LOCAL 0x04034b50u
#define ZIP_CENTRAL 0x02014b50u
#define ZIP_END 0x06054b50u
#define ZIP_LOCAL_BYTES 30
#define ZIP_CENTRAL_BYTES 46
#define ZIP_END_BYTES 22
#define ZIP_COMMENT_MOST 65535
#define ZIP_VERSION 20 /* that is needed to unpack */
#define ZIP_STORED 0
#define ZIP_DEFLATED 8
#define ZIP_FLAG_SECRET 1

#endif
