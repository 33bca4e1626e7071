/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "unwind/cfi_in.h"

/* More than the section's size can only be asked for by entries that share or repeat programs. */
#define BUDGET_FACTOR 4
#define BUDGET_MIN 65536

/* Factors that are larger are no machine's, and would overflow what they multiply. */
#define ALIGN_MAX 1024

void weft__cfi_init(struct weft__cfi *cfi, const struct weft__cfi_input *in)
{
	memset(cfi, 0, sizeof(*cfi));
	cfi->in = *in;
	cfi->budget = (uint64_t)in->n * BUDGET_FACTOR + BUDGET_MIN;
}

/* The entry at `at`: its body without the length. `id` is the CIE pointer as stored, `id_at` where that is. */
struct entry {
	struct weft__in body;
	uint64_t id, id_at, next;
	int is_cie;
};

static int entry_read(const struct weft__cfi_input *sec, uint64_t at, struct entry *entry)
{
	struct weft__in in;
	uint64_t n;
	unsigned wide;

	if (at >= sec->n)
		return 0;
	in = weft__in(sec->bytes + at, sec->n - at);
	n = in_fixed(&in, 4);
	wide = n == 0xffffffff;
	if (wide)
		n = in_fixed(&in, 8);
	if (in.bad || n == 0 || n > in_left(&in))
		return 0;
	in.end = in.p + n;
	entry->next = (uint64_t)(in.end - sec->bytes);
	entry->id_at = (uint64_t)(in.p - sec->bytes);
	/* In .eh_frame the id is always 4 bytes, whatever the length. */
	entry->id = in_fixed(&in, sec->debug_frame && wide ? 8 : 4);
	entry->is_cie = sec->debug_frame ? entry->id == (wide ? UINT64_MAX : 0xffffffff) : entry->id == 0;
	entry->body = in;
	return in.bad ? 0 : 1;
}

static void augmentation(struct cfi_cie *cie, const struct weft__cfi_input *sec, struct weft__in *in, const char *text)
{
	uint64_t n;
	struct weft__in data;

	if (*text != 'z')
		return;
	cie->z = 1;
	n = in_varint(in);
	data = weft__in(in->p, n <= in_left(in) ? n : 0);
	in_bytes(in, n);
	while (*++text && !data.bad) {
		uint8_t enc;

		switch (*text) {
		case 'R':
			cie->fde_enc = in_u8(&data);
			break;
		case 'L':
			in_u8(&data);
			break;
		case 'P':
			enc = in_u8(&data);
			if (enc != ENC_OMIT)
				in_pointer(&data, enc & (uint8_t)~ENC_INDIRECT & 0x1f, sec->bytes, sec->vaddr, 0,
					   cie->addr_size);
			break;
		case 'S':
			cie->initial.signal = 1;
			break;
		case 'B':
			break;
		default:
			/* What follows an unknown letter cannot be distinguished, but its length is known. */
			return;
		}
	}
}

static const uint8_t *text_end_find(const struct weft__in *in)
{
	for (const uint8_t *p = in->p; p < in->end; p++)
		if (!*p)
			return p;
	return NULL;
}

static int cie_read(struct weft__cfi *cfi, uint64_t at)
{
	struct cfi_cie *cie = &cfi->cie;
	const struct weft__cfi_input *sec = &cfi->in;
	struct entry entry;
	const char *text;
	const uint8_t *text_end;
	uint8_t version;
	uint64_t ra;

	if (cie->known && cie->at == at)
		return cie->known < 0 ? -EINVAL : 0;
	memset(cie, 0, sizeof(*cie));
	cie->at = (uint32_t)at;
	cie->known = -1;
	cie->addr_size = 8;
	if (at > UINT32_MAX || !entry_read(sec, at, &entry) || !entry.is_cie)
		return -EINVAL;
	version = in_u8(&entry.body);
	text = (const char *)entry.body.p;
	text_end = text_end_find(&entry.body);
	if ((version != 1 && version != 3 && version != 4) || !text_end)
		return -EINVAL;
	entry.body.p = text_end + 1;
	if (version == 4) {
		cie->addr_size = in_u8(&entry.body);
		cie->seg_size = in_u8(&entry.body);
	}
	if (text[0] == 'e' && text[1] == 'h' && !text[2]) /* of GCC 2 */
		in_bytes(&entry.body, 8);
	else if (*text && *text != 'z')
		return -EINVAL;
	cie->code_align = in_varint(&entry.body);
	cie->data_align = in_sleb(&entry.body);
	ra = version == 1 ? in_u8(&entry.body) : in_varint(&entry.body);
	if (entry.body.bad || ra >= ARCH_REGS || cie->addr_size != 8 || cie->seg_size || cie->code_align > ALIGN_MAX ||
	    cie->data_align > ALIGN_MAX || cie->data_align < -ALIGN_MAX)
		return -EINVAL;
	cie->initial.ra_reg = (uint8_t)ra;
	augmentation(cie, sec, &entry.body, text);
	if (entry.body.bad)
		return -EINVAL;
	memset(&cfi->row, 0, sizeof(cfi->row));
	cfi->row.ra_reg = cie->initial.ra_reg;
	cfi->row.signal = cie->initial.signal;
	if (weft__cfi_program(cfi, entry.body, 0, UINT64_MAX, NULL, NULL) < 0)
		return -EINVAL;
	cie->initial = cfi->row;
	cie->known = 1;
	return 0;
}

int weft__cfi_fde(struct weft__cfi *cfi, uint64_t at, struct cfi_fde *fde)
{
	const struct weft__cfi_input *sec = &cfi->in;
	struct entry entry;
	uint64_t cie_at, n;
	uint8_t enc;

	if (at > UINT32_MAX || !entry_read(sec, at, &entry) || entry.is_cie)
		return -EINVAL;
	cie_at = sec->debug_frame ? entry.id : entry.id_at - entry.id;
	if (cie_at >= sec->n || cie_read(cfi, cie_at) < 0)
		return -EINVAL;
	enc = sec->debug_frame ? 0 : cfi->cie.fde_enc;
	fde->at = (uint32_t)at;
	fde->cie_at = (uint32_t)cie_at;
	fde->begin = in_pointer(&entry.body, enc, sec->bytes, sec->vaddr, sec->hdr_vaddr, cfi->cie.addr_size);
	fde->end = fde->begin + in_number(&entry.body, enc, cfi->cie.addr_size);
	if (cfi->cie.z) {
		n = in_varint(&entry.body);
		in_bytes(&entry.body, n);
	}
	if (entry.body.bad || fde->end < fde->begin)
		return -EINVAL;
	fde->ops_at = (uint64_t)(entry.body.p - sec->bytes);
	fde->ops_n = in_left(&entry.body);
	return 0;
}

int weft__cfi_next(struct weft__cfi *cfi, uint64_t *at, struct cfi_fde *fde, uint32_t *bad)
{
	struct entry entry;

	while (entry_read(&cfi->in, *at, &entry)) {
		uint64_t here = *at;

		*at = entry.next;
		if (entry.is_cie)
			continue;
		if (weft__cfi_fde(cfi, here, fde) == 0)
			return 1;
		++*bad;
	}
	return 0;
}

/* The header: version, three encodings, where .eh_frame is, how many entries; then pairs (code, entry). */
struct header {
	uint64_t frame;
	uint64_t count;
	struct weft__in table;
};

static int header_read(const uint8_t *hdr, size_t n, uint64_t vaddr, struct header *ret)
{
	struct weft__in in = weft__in(hdr, n);
	uint8_t version = in_u8(&in), frame_enc = in_u8(&in), count_enc = in_u8(&in), table_enc = in_u8(&in);

	if (version != 1 || frame_enc == ENC_OMIT)
		return -EINVAL;
	ret->frame = in_pointer(&in, frame_enc, hdr, vaddr, vaddr, 8);
	ret->count = 0;
	ret->table = in;
	/* Every linker makes this form of the table; with another the section is walked. */
	if (in.bad || count_enc == ENC_OMIT || table_enc != (ENC_DATAREL | 0x0b))
		return in.bad ? -EINVAL : 0;
	ret->count = in_pointer(&in, count_enc, hdr, vaddr, vaddr, 8);
	ret->table = in;
	if (in.bad || ret->count > in_left(&in) / 8)
		ret->count = 0;
	return 0;
}

int weft__cfi_extent(const uint8_t *hdr, size_t avail, uint64_t hdr_vaddr, uint64_t *begin, uint64_t *last,
		     size_t *hdr_n)
{
	struct header header;
	uint64_t top = 0;

	if (!hdr || header_read(hdr, avail, hdr_vaddr, &header) < 0)
		return -EINVAL;
	for (uint64_t i = 0; i < header.count; i++) {
		uint64_t fde = hdr_vaddr + (uint64_t)(int64_t)(int32_t)get_u32(header.table.p + i * 8 + 4);

		top = fde > top ? fde : top;
	}
	*begin = header.frame;
	*last = top;
	*hdr_n = (size_t)(header.table.p - hdr) + header.count * 8;
	return 0;
}

int weft__cfi_begin(const uint8_t *hdr, size_t avail, uint64_t hdr_vaddr, uint64_t *begin)
{
	struct header header;

	if (header_read(hdr, avail, hdr_vaddr, &header) < 0)
		return -EINVAL;
	*begin = header.frame;
	return 0;
}

uint32_t weft__cfi_listed(const struct weft__cfi *cfi)
{
	struct header header;

	if (!cfi->in.hdr || header_read(cfi->in.hdr, cfi->in.hdr_n, cfi->in.hdr_vaddr, &header) < 0)
		return 0;
	return header.count <= UINT32_MAX ? (uint32_t)header.count : 0;
}

int weft__cfi_listed_at(const struct weft__cfi *cfi, uint32_t i, uint64_t *at)
{
	const struct weft__cfi_input *sec = &cfi->in;
	struct header header;
	uint64_t fde;

	if (header_read(sec->hdr, sec->hdr_n, sec->hdr_vaddr, &header) < 0 || i >= header.count)
		return -EINVAL;
	fde = sec->hdr_vaddr + (uint64_t)(int64_t)(int32_t)get_u32(header.table.p + (size_t)i * 8 + 4) - sec->vaddr;
	if (fde >= sec->n)
		return -EINVAL;
	*at = fde;
	return 0;
}

int weft__cfi_run(struct weft__cfi *cfi, const struct cfi_fde *fde,
		  void (*row)(void *arg, uint64_t pc, const struct cfi_row *row), void *arg)
{
	if (cie_read(cfi, fde->cie_at) < 0)
		return -EINVAL;
	cfi->row = cfi->cie.initial;
	return weft__cfi_program(cfi, weft__in(cfi->in.bytes + fde->ops_at, fde->ops_n), fde->begin, fde->end, row,
				 arg);
}

int weft__cfi_search(const struct weft__cfi *cfi, uint64_t vaddr, uint64_t *at)
{
	const struct weft__cfi_input *sec = &cfi->in;
	struct header header;
	uint64_t first = 0, n;

	if (!sec->hdr || header_read(sec->hdr, sec->hdr_n, sec->hdr_vaddr, &header) < 0 || !header.count)
		return -ENOENT;
	for (n = header.count; n > 1;) {
		uint64_t half = n / 2;

		if (sec->hdr_vaddr + (uint64_t)(int64_t)(int32_t)get_u32(header.table.p + (first + half) * 8) <= vaddr)
			first += half;
		n -= half;
	}
	return weft__cfi_listed_at(cfi, (uint32_t)first, at);
}

int weft__cfi_row_at(struct weft__cfi *cfi, const struct cfi_fde *fde, uint64_t vaddr)
{
	int result;

	if (vaddr < fde->begin || vaddr >= fde->end || cie_read(cfi, fde->cie_at) < 0)
		return -EINVAL;
	cfi->row = cfi->cie.initial;
	result = weft__cfi_program(cfi, weft__in(cfi->in.bytes + fde->ops_at, fde->ops_n), fde->begin, vaddr, NULL,
				   NULL);
	return result == -ERANGE ? 0 : result;
}
