/* SPDX-License-Identifier: Apache-2.0 */
/* The aarch64 half of the unwinder: compiled with warnings as errors, and run under an emulator. */
/* presets: release: it compiles for itself */
#include <stdlib.h>
#include <unistd.h>

#include "weft_test.h"

static int shell(const char *command)
{
	return system(command);
}

TEST(aarch64_unwinds_under_an_emulator)
{
	static const char build[] = "cd \"${WEFT_SOURCE:-.}\" && aarch64-linux-gnu-gcc -std=gnu11 -O2 "
				    "-fomit-frame-pointer -D_GNU_SOURCE=1 -Wall -Wextra "
				    "-Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -Isrc -Iinclude -Itest "
				    "test/unit/unwind/fixture/cross.c src/unwind/*.c src/base/alloc.c src/base/heap.c "
				    "src/base/private_fds_hot.c "
				    "src/base/intern.c src/base/map.c src/base/sort.c -o %s/cross -pthread";
	char dir[] = "/tmp/weft-cross-XXXXXX", command[1024];

	if (shell("command -v aarch64-linux-gnu-gcc >/dev/null") != 0)
		SKIP("no aarch64-linux-gnu-gcc (Debian: gcc-aarch64-linux-gnu)");
	REQUIRE(mkdtemp(dir) != NULL);
	snprintf(command, sizeof(command), build, dir);
	CHECK_EQ(shell(command), 0);
	if (shell("command -v qemu-aarch64 >/dev/null") == 0) {
		snprintf(command, sizeof(command), "timeout 60 qemu-aarch64 -L /usr/aarch64-linux-gnu %s/cross", dir);
		CHECK_EQ(shell(command), 0);
	} else {
		printf("\treason: only compiled, no qemu-aarch64 (Debian: qemu-user)\n");
	}
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_EQ(shell(command), 0);
}
