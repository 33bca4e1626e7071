/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files and directories given, so that its corpus is an ordinary test. Each input is in a
 * buffer of just its size, where ASan sees the first byte read beyond it. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static unsigned n_inputs;

static int run_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);
	int ret = -1;

	if (!file || !data) {
		perror(path);
	} else if (fread(data, 1, size, file) != size) {
		fprintf(stderr, "%s: cannot be read\n", path);
	} else {
		LLVMFuzzerTestOneInput(data, size);
		n_inputs++;
		ret = 0;
	}
	free(data);
	if (file)
		fclose(file);
	return ret;
}

static int run(const char *path)
{
	struct dirent **names;
	struct stat st;
	int n, ret = 0;

	if (stat(path, &st) < 0) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode))
		return run_file(path, (size_t)st.st_size);
	n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char child[4096];

		snprintf(child, sizeof(child), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && run(child) < 0)
			ret = -1;
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return n < 0 ? -1 : ret;
}

int main(int argc, char **argv)
{
	int ret = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		if (run(argv[i]) < 0)
			ret = 1;
	if (!n_inputs) {
		fprintf(stderr, "no inputs: give a corpus directory that has some\n");
		ret = 1;
	}
	printf("%u inputs\n", n_inputs);
	return ret;
}
