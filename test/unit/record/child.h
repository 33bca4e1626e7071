/* SPDX-License-Identifier: Apache-2.0 */
/* Children that are allowed less. */
#ifndef WEFT_TEST_RECORD_CHILD_H
#define WEFT_TEST_RECORD_CHILD_H

#include "session.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* From here on that system call answers `error`, as a container's filter has it. 0, or not: it cannot be done. */
static inline int child_refuse(long call, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Becomes somebody else, with the directory. 0, or not: it cannot be done. */
static inline int child_become(uid_t uid)
{
	return chown(session_dir, uid, 65534) || setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	       setresuid(uid, uid, uid);
}

/* Runs `fn` in a child, which may give away what it has. What it ended with: 0, or 77 when it skipped. */
static inline int child_run(void (*fn)(const void *), const void *data)
{
	pid_t pid;
	int r;

	session_fresh_dir();
	pid = fork();
	if (pid == 0) {
		weft_test_failures = 0;
		fn(data);
		_exit(weft_test_failures ? 1 : weft_test_skipped ? 77 : 0);
	}
	r = session_wait(pid);
	session_remove_dir();
	return r;
}

#endif
