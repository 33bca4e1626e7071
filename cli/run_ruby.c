/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby loads the gem by itself, if it is installed: a file of ours looks for it, and does nothing without it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define FILE_NAME "run.rb"

/* In a build tree, or where `make install` puts it. */
static bool find_file(char *path)
{
	static const char *const locations[] = {"../share/weft/ruby/", "../../bindings/ruby/lib/weft/"};
	char self[PATH_MAX], tried[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	slash[1] = 0;
	for (i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		snprintf(tried, sizeof(tried), "%s%s" FILE_NAME, self, locations[i]);
		/* Ruby splits RUBYOPT at spaces and knows no quoting. */
		if (realpath(tried, path) && !strchr(path, ' '))
			return true;
	}
	return false;
}

void run_ruby_environment(void)
{
	const char *before = getenv("RUBYOPT");
	char path[PATH_MAX], *options = NULL;

	if (!find_file(path))
		return;
	if (asprintf(&options, "-r%s%s%s", path, before && before[0] ? " " : "", before ? before : "") < 0)
		return;
	setenv("RUBYOPT", options, 1);
	free(options);
}
