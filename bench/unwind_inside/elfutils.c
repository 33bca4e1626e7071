/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind_inside/elfutils.h"

#include <elfutils/libdwfl.h>
#include <string.h>
#include <unistd.h>

static struct {
	const struct weft__unwind_regs *regs;
	const struct weft__unwind_range *copy;
	size_t frames;
} now;

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl;
	(void)arg;
	if (*thread_arg)
		return 0;
	*thread_arg = &now;
	return getpid();
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	(void)dwfl;
	(void)arg;
	if (addr < now.copy->low || addr > now.copy->high - 8)
		return false;
	memcpy(result, (const char *)now.copy->bytes + (addr - now.copy->low), 8);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
	return dwfl_thread_state_registers(thread, 0, ARCH_REGS, now.regs->r);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	Dwarf_Addr pc;
	bool exact;

	(void)arg;
	if (!dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	now.frames++;
	return DWARF_CB_OK;
}

void *elfutils_open(void)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
						 .find_debuginfo = dwfl_standard_find_debuginfo};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread, .memory_read = read_memory, .set_initial_registers = set_registers};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		return NULL;
	if (dwfl_linux_proc_report(dwfl, getpid()) == 0 && dwfl_report_end(dwfl, NULL, NULL) == 0 &&
	    dwfl_attach_state(dwfl, NULL, getpid(), &threads, &now))
		return dwfl;
	dwfl_end(dwfl);
	return NULL;
}

size_t elfutils_walk(void *state, const struct weft__unwind_regs *regs, const struct weft__unwind_range *copy)
{
	now.regs = regs;
	now.copy = copy;
	now.frames = 0;
	dwfl_getthread_frames(state, getpid(), on_frame, NULL);
	return now.frames;
}

void elfutils_close(void *state)
{
	dwfl_end(state);
}
