# SPDX-License-Identifier: Apache-2.0
# docs/man/NAME.SECTION.scd -> man/NAME.SECTION, where scdoc is there.
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.scd)
find_program(SCDOC scdoc)
if(pages AND NOT SCDOC)
	message(STATUS "scdoc not found: no man pages")
elseif(pages)
	file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
	foreach(page ${pages})
		get_filename_component(name ${page} NAME_WLE)
		string(REGEX MATCH "[0-9]$" section ${name})
		set(out ${PROJECT_BINARY_DIR}/man/${name})
		add_custom_command(OUTPUT ${out} COMMAND sh -c "${SCDOC} < ${page} > ${out}.tmp && mv ${out}.tmp ${out}"
			DEPENDS ${page} VERBATIM)
		list(APPEND made ${out})
		install(FILES ${out} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
	endforeach()
	add_custom_target(man ALL DEPENDS ${made})
endif()
