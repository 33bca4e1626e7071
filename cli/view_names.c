/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the page: it has no program files, so what they and their debug info say of places in stacks and of locks
 * is looked up here. viewer/wasm/names.c reads what is written here. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/recording.h"
#include "base/alloc.h"
#include "symbol/data.h"
#include "view.h"

static void text(FILE *out, const char *from)
{
	for (; *from; from++)
		if (*from == '\t' || *from == '\n' || *from == '\\')
			fprintf(out, "\\%c", *from == '\t' ? 't' : *from == '\n' ? 'n' : '\\');
		else
			fputc(*from, out);
}

static void write_site(FILE *out, const struct weft__frames *f, const struct weft__site *site)
{
	uint32_t i;

	for (i = 0; i < site->n; i++)
		if (!f->functions[f->lines[site->first + i].function].known)
			return;
	fprintf(out, "S\t%u\t%" PRIx64 "\n", f->modules[site->module].def.id, site->offset);
	for (i = 0; i < site->n; i++) {
		const struct weft__line *line = &f->lines[site->first + i];

		fprintf(out, "F\t%u\t%d\t", line->line, line->inlined);
		text(out, line->file);
		fputc('\t', out);
		text(out, f->functions[line->function].name);
		fputc('\n', out);
	}
}

static int write_recording(struct weft__recording *rec, FILE *out)
{
	struct weft__frames *f = &rec->frames;
	struct weft__naming naming;
	bool *had = weft__calloc(f->n_sites + 1, sizeof(*had));
	size_t i;
	int rc = had ? 0 : -ENOMEM;

	for (i = 0; had && i < f->n_sites; i++)
		had[i] = f->sites[i].n > 0;
	for (i = 0; i < f->n_stacks; i++)
		weft__frames_want(f, f->stacks[i].id);
	weft__recording_naming(rec, false, &naming);
	if (rc == 0)
		rc = weft__recording_want_objects(rec);
	if (rc == 0)
		rc = weft__frames_name(f, &naming);
	if (rc == 0)
		rc = weft__frames_name_data(f, &naming);
	fputs("R\t", out);
	for (i = 0; i < sizeof(rec->id); i++)
		fprintf(out, "%02x", rec->id[i]);
	fprintf(out, "\t%" PRIu64 "\n", rec->dump);
	for (i = 0; rc == 0 && i < f->n_sites; i++)
		if (!had[i] && f->sites[i].n > 0 && f->sites[i].wanted)
			write_site(out, f, &f->sites[i]);
	for (i = 0; rc == 0 && i < f->n_data; i++)
		if (f->data[i].name) {
			fprintf(out, "D\t%" PRIx64 "\t", f->data[i].address);
			text(out, f->data[i].name);
			fputc('\n', out);
		}
	weft__free(had);
	return rc;
}

int view_names_write(struct view_files *files, FILE *out)
{
	struct weft__recordings list = {0};
	size_t i;
	int rc = 0;

	pthread_mutex_lock(&files->lock);
	for (i = 0; i < files->n && rc == 0; i++)
		if (files->at[i].there && weft__recordings_add(&list, files->at[i].path, NULL) == -ENOMEM)
			rc = -ENOMEM;
	pthread_mutex_unlock(&files->lock);
	weft__recordings_settle(&list);
	for (i = 0; i < list.n && rc == 0; i++)
		rc = write_recording(&list.all[i], out);
	weft__recordings_fini(&list);
	return rc;
}
