# SPDX-License-Identifier: Apache-2.0
# Every path in the installed files is relative to the file itself, so a tree may be moved or installed under DESTDIR.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
file(RELATIVE_PATH pc_to_root /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_root "${pc_to_root}")

configure_file(cmake/weft.pc.in weft.pc @ONLY)
include(cmake/trace.cmake)
add_dependencies(product weft_trace)
configure_file(cmake/weftConfig.cmake.in weftConfig.cmake @ONLY)
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS weft_shared weft_static EXPORT weft LIBRARY ARCHIVE INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION ${config_dir})
install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
	DESTINATION ${config_dir})
