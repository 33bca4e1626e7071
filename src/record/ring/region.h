/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the rings: making it for a session, leaving it, and opening what another process left. CALLER. */
#ifndef WEFT_RING_REGION_H
#define WEFT_RING_REGION_H

#include "base/clock.h"
#include "base/own.h"
#include "record/ring/chunks.h"
#include "record/ring/layout.h"
#include "weft/recorder.h"

struct weft__region {
	struct weft__own_file file; /* -1: private memory */
	char *base;
	struct rings_head *head;
	size_t bytes;          /* up to the end of the first chunk of rings */
	struct rings_map *map; /* of the rings: the emit path's while it has the region, else */
	struct rings_map own_map;
	uint32_t *free_next;
	int adopted;        /* another process made it */
	uint32_t place;     /* enum weft_ring_place, as it came out; WEFT_RING_AUTO means /dev/shm */
	char dir[400];      /* of the recording, or "" */
	char home[400];     /* the directory of the file: that, or /dev/shm */
	char name[200];     /* of the file; "" in private memory */
	char link[200];     /* of the link to it in `dir`, or "" */
	char degraded[200]; /* why it is not where it should be, or "" */
};

struct weft__region_want {
	uint32_t place;
	const char *dir;  /* NULL: memory only */
	const char *stem; /* of file names, unique to the recording */
	const char *service;
	uint32_t ring_slots;
	uint32_t ring_most; /* weft__region_open sets it */
	uint32_t max_rings;
	uint32_t quantum_ns;
	int stacks; /* there will be samples */
	enum weft__tick_source source;
	const uint8_t *recording;
};

/* Makes and maps it. Falls back from /dev/shm to the directory to private memory. 0 or a negative error. */
int weft__region_open(struct weft__region *region, const struct weft__region_want *want, struct weft_error *err);
/* Gives it to the emit path, which must not be recording. */
void weft__region_use(struct weft__region *region);
/* Takes it away again: waits until nobody is attaching. What a straggler still writes goes to private memory. */
void weft__region_leave(struct weft__region *region);
/* In a forked child: the parent's memory must not be touched. */
void weft__region_forsake(struct weft__region *region);
/* Makes the link in the directory again when somebody deleted it. */
void weft__region_relink(const struct weft__region *region);
/* Opens the file again when the program closed it, since its lock went with it. */
void weft__region_reopen(struct weft__region *region);
/* Removes the file and the link. */
void weft__region_remove(struct weft__region *region);
void weft__region_close(struct weft__region *region);
/* retire.c. Lets go of the mapping, but for addresses that threads still point to; and of those that no thread does
 * any more. */
void weft__region_retire(struct weft__region *region);
void weft__retired_sweep(void);

/* Takes over the ring file `name` of a dead process in a directory: locked, and copied, since who cuts a mapped file
 * ends who reads it. -EPERM: it is none that weft may touch. -EBADF: it does not carry weft's mark. -WEFT_E_BUSY:
 * its process lives. -ENODATA: its process died before it wrote anything. -WEFT_E_FORMAT: it is broken. */
int weft__region_adopt(struct weft__region *region, int dir, const char *name, struct weft_error *err);
/* Whether that is the text of the link to the rings of a recording of this user; then the name of the file in
 * /dev/shm. */
int weft__region_link_valid(const char *link, const char *text, char *name, size_t bytes);
/* Opens /dev/shm when rings may be there. A descriptor, or -errno. */
int weft__region_shm(void);
/* Removes rings in /dev/shm of dead processes of this user whose directory, or the link in it, was removed: nobody
 * would find them. */
void weft__region_sweep(void);

/* What files are called until they are locked by the process that makes them. */
#define NEW_END ".new"

/* Takes the lock that says "this process lives", which the kernel drops with the process. 0 or -WEFT_E_BUSY. */
int weft__file_lock(int fd);

#endif
