/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that are not files here: what is in a bucket below s3://BUCKET/PREFIX, and what is in a zip archive. They
 * are put into a private temporary directory, which is removed when the command ends, by a signal too. */
#ifndef WEFT_CLI_FETCH_H
#define WEFT_CLI_FETCH_H

#include <stdbool.h>

/* Whether it is a URL of a bucket, or an archive. */
bool cli_fetch_wanted(const char *path);
/* Puts its segments into a directory of their own, and answers the path of that, which stays until the command ends.
 * `jfr`: JFR files, too. NULL after saying why there is none. `*some_missing` becomes true when a part of it could not
 * be had. */
char *cli_fetch(const char *path, bool jfr, bool *some_missing);

#endif
