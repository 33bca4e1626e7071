# SPDX-License-Identifier: Apache-2.0
# The programs that the tests of src/symbol look at. They are compiled as programs of others are: with no flag of ours.
file(GLOB fixture_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/fixture/*)
set(fixture_dir ${CMAKE_CURRENT_BINARY_DIR}/unit/symbol/fixture)
add_custom_command(OUTPUT ${fixture_dir}.made
	COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/fixture/make ${CMAKE_CURRENT_LIST_DIR}/fixture ${fixture_dir}
	COMMAND ${CMAKE_COMMAND} -E touch ${fixture_dir}.made
	DEPENDS ${fixture_sources} VERBATIM)
add_custom_target(symbol_fixtures ALL DEPENDS ${fixture_dir}.made)
