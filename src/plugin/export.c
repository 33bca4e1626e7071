/* SPDX-License-Identifier: Apache-2.0 */
/* The encoders of libweft-symbolize.so, for reporters inside the application: libweft.so has none of it linked in. */
#include "export/export.h"

__attribute__((visibility("default"))) weft_export_plugin_fn weft_export_plugin;

const struct weft_export_plugin *weft_export_plugin(void)
{
	static const struct weft_export_plugin plugin = {
		.abi = WEFT_EXPORT_ABI,
		.opts_bytes = sizeof(struct weft__export_opts),
		.pprof = weft__export_pprof,
		.otlp = weft__export_otlp,
		.folded = weft__export_folded,
		.provenance = weft__export_provenance,
		.forms = weft__export_forms,
		.forget = weft__export_forget,
		.free = weft__export_free,
	};

	return &plugin;
}
