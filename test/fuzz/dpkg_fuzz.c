/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a list of dpkg's, and as its status file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "package/dpkg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"/usr/lib/a.so", "/lib/b.so", "/opt/c", "/usr/"};
	struct weft__dpkg dpkg = {0};
	const char *text = (const char *)data;
	size_t half = size / 2, i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (weft__dpkg_want(&dpkg, paths[i]) < 0)
			abort();
	if (weft__dpkg_list(&dpkg, "a:amd64", 7, text, half) < 0 ||
	    weft__dpkg_list(&dpkg, "b", 1, text + half, size - half) < 0 || weft__dpkg_status(&dpkg, text, size) < 0)
		abort();
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct weft__dpkg_package *of = weft__dpkg_get(&dpkg, paths[i]);

		if (of && strlen(weft__keys_at(&dpkg.texts, of->version, NULL)) > 255)
			abort();
	}
	weft__dpkg_fini(&dpkg);
	return 0;
}
