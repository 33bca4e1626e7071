/* SPDX-License-Identifier: Apache-2.0 */
/* Views of samples by function: how much each weighs alone and with what it called, a tree of calls, and how good
 * the stacks are. All of them are made of struct weft__samples, or of the stacks of one poll, and of frames that
 * have their names. Context: CALLER. */
#ifndef WEFT_ANALYZE_PROFILE_H
#define WEFT_ANALYZE_PROFILE_H

#include "analyze/analysis.h"
#include "analyze/frames.h"

struct weft__function_weight {
	uint32_t function; /* index in the frames' functions */
	struct weft__weight self;
	struct weft__weight total; /* a sample counts once, however often the function is in its stack */
};

/* How far stacks can be trusted, in samples. Those of the first five are all there are. */
struct weft__quality {
	struct weft__weight complete;
	struct weft__weight cut;       /* deeper than was asked for: the outer frames are missing */
	struct weft__weight lost;      /* ends where nothing says how to go on */
	struct weft__weight none;      /* of the program; there may be frames of the kernel */
	struct weft__weight undefined; /* its definition is in no segment that could be read */
	struct weft__weight fp;        /* some frames are from frame pointers */
	struct weft__weight no_code;   /* the leaf is in no known module */
	struct weft__weight early;     /* some rules were still to be made */
	struct weft__weight kernel;    /* has frames of the kernel */
};

struct weft__profile {
	struct weft__function_weight *functions; /* the most self first */
	size_t n_functions;
	struct weft__weight all;      /* samples that were looked at */
	struct weft__weight nameless; /* of these, without a single frame: in no function */
	struct weft__quality quality;
};

/* Marks the places of all rows, and of the polls in lists, as wanted. */
void weft__profile_want(const struct weft__result *result, struct weft__frames *frames);

/* `*ret` is the caller's, to be given to fini. Returns 0 or -ENOMEM. */
int weft__profile_init(struct weft__profile *ret, const struct weft__samples *samples,
		       const struct weft__frames *frames);
void weft__profile_fini(struct weft__profile *profile);

/* As function of a node: what is below it belongs below something that is not known, because the stack was cut at
 * the depth limit, or was lost on the way. */
#define WEFT__NODE_CUT 0xfffffffeu
#define WEFT__NODE_LOST 0xfffffffdu

/* A tree of calls, from the outermost function to the leaf. */
struct weft__node {
	uint32_t function;
	uint32_t parent;
	uint32_t child; /* the heaviest; 0: none */
	uint32_t next;  /* sibling, lighter; 0: none */
	struct weft__weight self;
	struct weft__weight total;
};

struct weft__tree {
	struct weft__node *nodes; /* [0] is above all others and has no function */
	size_t n, cap;
	struct weft__map by_call; /* (parent, function) */
	struct weft__line_list scratch;
};

/* {0} is ready for use. Add returns 0 or -ENOMEM. Sort, once all is added, puts siblings in order. */
int weft__tree_add(struct weft__tree *tree, const struct weft__frames *frames, uint32_t stack, uint32_t kernel,
		   struct weft__weight weight);
/* The same without weft's own functions at the leaf. */
int weft__tree_add_wait(struct weft__tree *tree, const struct weft__frames *frames, uint32_t stack, uint32_t kernel,
			struct weft__weight weight);
int weft__tree_add_poll(struct weft__tree *tree, const struct weft__frames *frames, const struct weft__poll *poll);
void weft__tree_sort(struct weft__tree *tree);
void weft__tree_fini(struct weft__tree *tree);

/* The innermost function that at least half of the weight goes through, as node; 0 when there is none. */
uint32_t weft__tree_heart(const struct weft__tree *tree);

#endif
