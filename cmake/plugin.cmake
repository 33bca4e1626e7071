# SPDX-License-Identifier: Apache-2.0
# libweft-symbolize.so: src/symbol and what it needs, for recorders that are to put names into their segments
# themselves. libweft.so opens it when asked to, and so does not depend on elfutils. It has its own copy of what both
# need. Encoders of profiles (src/export) are in it, too, for reporters.
add_library(weft_symbolize MODULE src/plugin/symbolize.c src/plugin/export.c)
set_target_properties(weft_symbolize PROPERTIES OUTPUT_NAME weft-symbolize
	LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/plugin/symbolize.map)
target_include_directories(weft_symbolize PRIVATE include src)
target_link_libraries(weft_symbolize PRIVATE weft_analyze)
target_link_options(weft_symbolize PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/src/plugin/symbolize.map
	-Wl,-z,nodelete)
install(TARGETS weft_symbolize LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# libweft-ship.so: src/ship, for recorders that send their segments themselves.
add_library(weft_ship MODULE src/plugin/ship.c)
set_target_properties(weft_ship PROPERTIES OUTPUT_NAME weft-ship
	LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/plugin/ship.map)
target_include_directories(weft_ship PRIVATE include src)
target_link_libraries(weft_ship PRIVATE weft_ship_static)
target_link_options(weft_ship PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/src/plugin/ship.map
	-Wl,-z,nodelete)
install(TARGETS weft_ship LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
