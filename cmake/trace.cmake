# SPDX-License-Identifier: Apache-2.0
# libweft-trace.so: rows of recordings, for other people's programs (weft/trace.h). libweft.so does not depend on it,
# nor it on libweft.so: it has its own copy of what both need.
add_library(weft_trace SHARED src/trace/reader.c)
set_target_properties(weft_trace PROPERTIES OUTPUT_NAME weft-trace EXPORT_NAME trace VERSION ${PROJECT_VERSION}
	SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/trace/libweft-trace.map)
target_include_directories(weft_trace PRIVATE include src INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
target_link_libraries(weft_trace PRIVATE weft_analyze)
target_link_options(weft_trace PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/src/trace/libweft-trace.map)
install(TARGETS weft_trace LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
configure_file(cmake/weft-trace.pc.in weft-trace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft-trace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
